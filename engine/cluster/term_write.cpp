#include "engine/cluster/term_write.h"

#include <utility>

#include "io/check.h"
#include "io/probe.h"

namespace engine::cluster {

Written write_in_term(Proposer& proposer, raft::Term term, std::string command, io::Instant deadline) {
  if (!leads_in(proposer, term)) {
    SOMETIMES("controller: a write of a term that has passed is not proposed");
    return {Written::Kind::not_written, {}, "this node does not lead in that term any more"};
  }
  // Nothing waits between the check and the append: the entry is of that term or is none.
  Proposed proposed = proposer.propose(std::move(command), deadline);
  switch (proposed.outcome) {
    case Proposed::Outcome::applied: {
      std::optional<metastore::Answer> answer = metastore::decode_answer(proposed.answer);
      NARAD_CHECK(answer.has_value(), "an applied proposal without the state machine's answer");
      if (answer->ok()) {
        return {Written::Kind::done, {}, ""};
      }
      std::string text = answer->text();
      return {Written::Kind::refused, std::move(*answer), std::move(text)};
    }
    case Proposed::Outcome::unknown:
      return {Written::Kind::unknown, {}, std::move(proposed.reason)};
    case Proposed::Outcome::not_leader:
    case Proposed::Outcome::refused:
    case Proposed::Outcome::too_large:
    case Proposed::Outcome::stopped:
      return {Written::Kind::not_written, {}, std::move(proposed.reason)};
  }
  NARAD_CHECK(false, "an outcome that does not exist");
  return {};
}

}  // namespace engine::cluster
