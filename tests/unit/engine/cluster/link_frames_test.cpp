// The bytes of attach and detach, and of writes for leaders of older releases.

#include "engine/cluster/link_frames.h"

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace engine::cluster;

std::string bytes(std::string_view text) { return std::string(text); }
#define BYTES(literal) bytes(std::string_view(literal, sizeof(literal) - 1))

TEST(LinkFrames, AttachIsParentChildAndDelay) {
  EXPECT_EQ(encode(AttachChildRequest{"ab", "c", 0x0102030405, std::nullopt}),
            BYTES("\x0f\0\0\0\2ab\0\0\0\1c\0\0\0\1\2\3\4\5"));
  EXPECT_EQ(encode(AttachChildRequest{"ab", "c", -1, "me"}),
            BYTES("\x0f\0\0\0\2ab\0\0\0\1c\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\2me"));
}

TEST(LinkFrames, DetachWritesADelayThatMeansNothing) {
  EXPECT_EQ(encode(DetachChildRequest{"ab", "c", 0, std::nullopt}), BYTES("\x10\0\0\0\2ab\0\0\0\1c\0\0\0\0\0\0\0\0"));
  EXPECT_EQ(encode(DetachChildRequest{"", "", 0, ""}), BYTES("\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")) << "an empty actor is one";
}

TEST(LinkFrames, DecodingIsTheInverseAndStrict) {
  for (const AttachChildRequest& request : {AttachChildRequest{"p", "c", 7, std::nullopt}, AttachChildRequest{"p", "c", -7, "me"}}) {
    EXPECT_EQ(*decode_attach_child(encode(request)), request);
  }
  const DetachChildRequest detach{"p", "c", 0, "me"};
  EXPECT_EQ(*decode_detach_child(encode(detach)), detach);
  const std::string whole = encode(AttachChildRequest{"p", "c", 7, "me"});
  const std::string without = encode(AttachChildRequest{"p", "c", 7, std::nullopt});
  for (size_t length = 1; length < whole.size(); ++length) {
    EXPECT_EQ(decode_attach_child(whole.substr(0, length)).ok(), length == without.size()) << length;
  }
  EXPECT_EQ(decode_attach_child(whole + "x").error().message, "trailing node rpc payload data");
}

TEST(LinkFrames, OlderLeadersGetTheSameRequestWithoutTheActor) {
  const WriteFrames nobody = write_frames(AttachChildRequest{"p", "c", 7, std::nullopt});
  EXPECT_EQ(nobody.payload, encode(AttachChildRequest{"p", "c", 7, std::nullopt}));
  EXPECT_EQ(nobody.older, "");
  EXPECT_EQ(write_frames(AttachChildRequest{"p", "c", 7, "me"}).older, nobody.payload);
  EXPECT_EQ(write_frames(DeleteTopicRequest{"t", "id", "me"}).older, encode(DeleteTopicRequest{"t", "id", std::nullopt}));
  EXPECT_EQ(write_frames(CreateTopicRequest{"t", "{}", "me"}).older, encode(CreateTopicRequest{"t", "{}", std::nullopt}));
  EXPECT_EQ(write_frames(AlterTopicRequest{"t", "{}", "me"}).older, encode(AlterTopicRequest{"t", "{}", std::nullopt}));
}

}  // namespace
