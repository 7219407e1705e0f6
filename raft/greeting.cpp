#include "raft/greeting.h"

#include <utility>
#include <variant>

#include "io/probe.h"

namespace raft {

namespace {
constexpr std::size_t kReadBytes = 256u << 10;
}

io::Result<Greeted> dial(io::Env& env, const std::string& address, const wire::Hello& hello, io::Instant deadline) {
  auto stream = env.net.connect(address, deadline);
  if (!stream.ok()) return stream.error();
  Greeted greeted;
  greeted.stream = std::move(*stream);
  std::string greeting;
  wire::encode(hello, greeting);
  if (io::Status written = greeted.stream->write(std::move(greeting), deadline); !written.ok()) return written.error();
  auto frame = next_frame(*greeted.stream, greeted.frames, wire::kGreetingBytesMax, deadline);
  if (!frame.ok()) return frame.error();
  if (const auto* refusal = std::get_if<wire::Refusal>(&*frame)) {
    SOMETIMES("raft: greeting refused by the other server");
    return io::fail(io::ErrorKind::denied, "refused by " + hello.to + ": " + refusal->reason);
  }
  if (!std::holds_alternative<wire::Welcome>(*frame)) {
    return io::fail(io::ErrorKind::corrupt, "a greeting was answered by something else");
  }
  return greeted;
}

io::Result<wire::Frame> next_frame(io::Stream& stream, wire::FrameReader& frames, std::size_t limit, io::Instant deadline) {
  for (;;) {
    auto frame = frames.next(limit);
    if (!frame.ok()) return frame.error();
    if (*frame) return wire::decode(**frame);
    auto bytes = stream.read(kReadBytes, deadline);
    if (!bytes.ok()) return bytes.error();
    if (bytes->empty()) return io::fail(io::ErrorKind::io, "the other side closed the connection");
    frames.add(std::move(*bytes));
  }
}

}  // namespace raft
