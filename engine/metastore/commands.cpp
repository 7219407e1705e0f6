#include "engine/metastore/commands.h"

#include <array>
#include <utility>

#include "engine/metastore/command_wire.h"
#include "io/check.h"

namespace engine::metastore {

namespace {

using DecodeAny = std::optional<Command> (*)(std::string_view);

template <typename C>
std::optional<Command> decode_any(std::string_view payload) {
  std::optional<C> command = decode_payload<C>(payload);
  return command ? std::optional<Command>(std::move(*command)) : std::nullopt;
}

template <size_t... I>
constexpr std::array<DecodeAny, sizeof...(I)> decoders(std::index_sequence<I...>) {
  static_assert(((static_cast<size_t>(std::variant_alternative_t<I, Command>::kType) == I + 1) && ...),
                "commands stand in the order of their types");
  return {decode_any<std::variant_alternative_t<I, Command>>...};
}

constexpr auto kDecoders = decoders(std::make_index_sequence<std::variant_size_v<Command>>());
static_assert(kDecoders.size() == kNewestEntryType);

}  // namespace

template <>
std::string encode_command<Command>(const Command& command) {
  return std::visit([](const auto& one) { return encode_command(one); }, command);
}

std::optional<Command> decode_payload(uint32_t type, std::string_view payload) {
  NARAD_CHECK(type >= 1 && type <= kNewestEntryType, "a payload of a type that this release does not know");
  return kDecoders[type - 1](payload);
}

}  // namespace engine::metastore
