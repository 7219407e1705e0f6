#include "sim/answers.h"

#include "io/probe.h"

namespace sim {

namespace ms = engine::metastore;

std::string answer_probe(uint32_t type, ms::Code code) {
  const std::string text(code == ms::Code::ok ? "done" : ms::text_of(code));
  return type == 0 ? "answer: " + text : "answer: " + std::string(ms::name_of(static_cast<ms::EntryType>(type))) + ": " + text;
}

std::string call_probe(CallKind kind, int status) {
  return "call: " + std::string(to_string(kind)) + ": " + std::to_string(status);
}

void note_answer(std::string_view bytes, const ms::Answer& answer) {
  const auto envelope = ms::read_envelope(bytes);
  const bool is_command = envelope && answer.code != ms::Code::undecodable && envelope->type <= ms::kNewestEntryType;
  if (is_command || answer.code == ms::Code::undecodable) {
    io::probe(answer_probe(is_command ? envelope->type : 0, answer.code).c_str());
  }
}

}  // namespace sim
