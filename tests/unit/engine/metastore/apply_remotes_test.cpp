// Every check of the entry types of remotes and remote children (33 to 37), as a table.

#include <string>
#include <vector>

#include "engine/metastore/apply_fanout.h"
#include "engine/metastore/apply_remotes.h"
#include "engine/metastore/apply_topics.h"
#include "tests/support/apply_table.h"

namespace {

using namespace engine::metastore;
using tests::Case;
using tests::Change;
using tests::gone;
using tests::is;
using tests::join;
using tests::make_topic;
using tests::moved;
using tests::with;

constexpr int64_t kDayMs = 86'400'000;
constexpr const char* kId = "00112233445566aa";  // of make_topic

Remote given(std::string name) {
  Remote remote;
  remote.name = std::move(name);
  remote.url = "https://far:7942";
  remote.username = "ann";
  remote.credential = std::string("sealed\0", 7);
  remote.fingerprint = "key1";
  return remote;
}

Remote stored(std::string name) {
  return with<Remote>(given(std::move(name)), [](Remote& remote) {
    remote.credential_version = 1;
    remote.revision = 1;
    remote.created_by = "root";
    remote.updated_by = "root";
    remote.created_at_ms = 77;
    remote.updated_at_ms = 77;
  });
}

CreateRemote create(std::string name) { return {given(std::move(name)), "salt", 77, "root", "r1"}; }

std::string counted(uint64_t value) {
  MemoryRows rows;
  WriteSet set(rows, 0);
  set_counter(set, "x", value);
  return *set.get(Bucket::counters, "x");
}

Change seals_are(uint64_t count, const std::string& key = "key1") { return {Bucket::remotes, seals_row(key), counted(count)}; }
Change salt_is(std::string salt) { return {Bucket::remotes, std::string(kSaltRow), std::move(salt)}; }

// ---- 35 --------------------------------------------------------------------------------------------------------------------

std::vector<Case> create_cases() {
  const Answer malformed{Code::invalid_argument, "a malformed remote"};
  auto changed = [](auto change) {
    CreateRemote entry = create("far");
    change(entry);
    return entry;
  };
  auto bad = [&](std::string name, auto change) { return Case{std::move(name), {}, changed(change), malformed, {}, {}}; };
  std::vector<Command> all{create("r0")};
  for (uint64_t i = 1; i < kRemotesMax; ++i) {
    all.push_back(create("r" + std::to_string(i)));
  }
  return {
      bad("WithoutANameIsMalformed", [](CreateRemote& entry) { entry.record.name = ""; }),
      bad("WithAReservedNameIsMalformed", [](CreateRemote& entry) { entry.record.name = "_salt"; }),
      bad("WithALargeLetterIsMalformed", [](CreateRemote& entry) { entry.record.name = "Far"; }),
      bad("WithALongNameIsMalformed", [](CreateRemote& entry) { entry.record.name = std::string(64, 'a'); }),
      bad("WithoutTlsIsMalformed", [](CreateRemote& entry) { entry.record.url = "http://far"; }),
      bad("WithAnEmptyAddressIsMalformed", [](CreateRemote& entry) { entry.record.url = "https://"; }),
      bad("WithoutAUserIsMalformed", [](CreateRemote& entry) { entry.record.username = ""; }),
      bad("WithAnUnprintableUserIsMalformed", [](CreateRemote& entry) { entry.record.username = "a\nb"; }),
      bad("WithoutACredentialIsMalformed", [](CreateRemote& entry) { entry.record.credential = ""; }),
      bad("WithALongCredentialIsMalformed", [](CreateRemote& entry) { entry.record.credential = std::string(kCredentialMax + 1, 'x'); }),
      bad("WithoutAFingerprintIsMalformed", [](CreateRemote& entry) { entry.record.fingerprint = ""; }),
      bad("WithALongCertificateIsMalformed", [](CreateRemote& entry) { entry.record.ca_pem = std::string(kRemoteCaMax + 1, 'x'); }),
      bad("WithALongSaltIsMalformed", [](CreateRemote& entry) { entry.salt = std::string(kSaltMax + 1, 'x'); }),
      bad("WithNothingInFlightIsMalformed", [](CreateRemote& entry) { entry.record.limits.max_in_flight = 0; }),
      bad("WithTooMuchInFlightIsMalformed", [](CreateRemote& entry) { entry.record.limits.max_in_flight = 257; }),
      bad("WithAShortTimeoutIsMalformed", [](CreateRemote& entry) { entry.record.limits.request_timeout_ms = 4'999; }),
      bad("WithALongTimeoutIsMalformed", [](CreateRemote& entry) { entry.record.limits.request_timeout_ms = 120'001; }),
      bad("WithoutAnIdleTimeoutIsMalformed", [](CreateRemote& entry) { entry.record.limits.idle_conn_timeout_ms = 0; }),
      bad("WithoutAConnectionAgeIsMalformed", [](CreateRemote& entry) { entry.record.limits.conn_max_age_ms = 0; }),
      bad("WithoutACheckIntervalIsMalformed", [](CreateRemote& entry) { entry.record.limits.check_interval_ms = -1; }),
      bad("WithAnUnknownCompressionIsMalformed", [](CreateRemote& entry) { entry.record.limits.compression = "gzip"; }),
      {"StoresRemoteSaltAndSeal", {}, create("far"), {}, {is(stored("far")), salt_is("salt"), seals_are(1)}, {moved(Domain::remotes)}},
      {"FixesVersionsAndTimes", {}, changed([](CreateRemote& entry) { entry.record = stored("far"); entry.record.revision = 9; }), {},
       {is(stored("far")), salt_is("salt"), seals_are(1)}, {moved(Domain::remotes)}},
      {"TakesTheNextWithoutASalt", {create("far")}, CreateRemote{given("near"), "", 77, "root", "r2"}, {},
       {is(stored("near")), seals_are(2)}, {moved(Domain::remotes)}},
      {"TakesTheSameSaltAgain", {create("far")}, create("near"), {}, {is(stored("near")), seals_are(2)}, {moved(Domain::remotes)}},
      {"CountsSealsByKey", {create("far")}, CreateRemote{with<Remote>(given("near"), [](Remote& r) { r.fingerprint = "key2"; }), "", 77, "root", ""},
       {}, {is(with<Remote>(stored("near"), [](Remote& r) { r.fingerprint = "key2"; })), seals_are(1, "key2")}, {moved(Domain::remotes)}},
      {"WithAnotherSaltIsRefusedAndCounted", {create("far")}, with<CreateRemote>(create("far"), [](CreateRemote& e) { e.salt = "other"; }),
       {Code::remote_salt_race, "remote far"}, {seals_are(2)}, {}},
      {"WithoutAnySaltIsRefusedAndCounted", {}, with<CreateRemote>(create("far"), [](CreateRemote& e) { e.salt = ""; }),
       {Code::remote_salt_race, "remote far"}, {seals_are(1)}, {}},
      {"OfAnExistingNameIsRefusedAndCounted", {create("far")}, create("far"), {Code::remote_exists, "remote far"}, {seals_are(2)}, {}},
      {"OverTheLimitIsRefusedAndCounted", all, create("one-more"), {Code::remote_limit, "64 remotes"}, {seals_are(65)}, {}},
  };
}

// ---- 36 --------------------------------------------------------------------------------------------------------------------

std::vector<Case> change_cases() {
  const SealedAgainst same{"https://far:7942", "ann", ""};
  auto change = [](RemoteFields fields) { return ChangeRemote{"far", std::move(fields), "", "", {}, 9, {}, false, 88, "bob", "r2"}; };
  auto reseal = [&](RemoteFields fields, std::optional<SealedAgainst> against) {
    ChangeRemote entry = change(std::move(fields));
    entry.credential = "new";
    entry.fingerprint = "key2";
    entry.sealed_against = std::move(against);
    return entry;
  };
  auto after = [](auto change_remote) {
    Remote remote = stored("far");
    remote.revision = 2;
    remote.updated_by = "bob";
    remote.updated_at_ms = 88;
    change_remote(remote);
    return is(remote);
  };
  const RemoteFields url{"https://other", {}, {}, {}};
  const RemoteFields bad_limits{{}, {}, {}, RemoteLimits{0, 0, 0, 0, 0, ""}};
  const RemoteFields good_limits{{}, {}, {}, RemoteLimits{256, 5'000, 1, 1, 1, "zstd"}};
  const std::vector<Command> has{create("far")};
  const Answer malformed{Code::invalid_argument, "a malformed credential"};
  const Answer bounds{Code::invalid_argument, "a field out of bounds"};
  const Answer is_changed{Code::remote_changed, "remote far is at revision 1"};
  const Answer missing{Code::not_found, "remote far"};
  const std::vector<Bump> bumps{moved(Domain::remotes)};
  auto without = [&](auto take_away) {
    ChangeRemote entry = reseal({}, same);
    take_away(entry);
    return entry;
  };
  return {
      {"WithoutAFingerprintIsMalformed", {}, without([](ChangeRemote& e) { e.fingerprint = ""; }), malformed, {}, {}},
      {"WithoutWhatItWasSealedAgainstIsMalformed", {}, without([](ChangeRemote& e) { e.sealed_against.reset(); }), malformed, {}, {}},
      {"WithALongCredentialIsMalformed", {}, without([](ChangeRemote& e) { e.credential = std::string(kCredentialMax + 1, 'x'); }),
       malformed, {}, {}},
      {"OfAMissingRemoteIsRefused", {}, change({}), missing, {}, {}},
      {"OfAMissingRemoteWithACredentialIsRefusedAndCounted", {}, reseal({}, same), missing, {seals_are(1, "key2")}, {}},
      {"OfAReservedRowIsRefused", has, with<ChangeRemote>(change(url), [](ChangeRemote& e) { e.name = "_salt"; }),
       {Code::not_found, "remote _salt"}, {}, {}},
      {"WithBadLimitsIsRefused", has, change(bad_limits), {Code::invalid_argument, "limits out of bounds"}, {}, {}},
      {"WithBadLimitsAndACredentialIsCounted", has, reseal(bad_limits, same), {Code::invalid_argument, "limits out of bounds"},
       {seals_are(1, "key2")}, {}},
      {"WithABadAddressIsRefused", has, change({"ftp://far", {}, {}, {}}), bounds, {}, {}},
      {"WithoutAUserIsRefused", has, change({{}, "", {}, {}}), bounds, {}, {}},
      {"WithALongCertificateIsRefused", has, change({{}, {}, std::string(kRemoteCaMax + 1, 'x'), {}}), bounds, {}, {}},
      {"OfNothingIsRefused", has, change({}), {Code::invalid_argument, "nothing to change"}, {}, {}},
      {"OfTheAddressWithoutACredentialIsRefused", has, change(url), is_changed, {}, {}},
      {"OfTheUserWithoutACredentialIsRefused", has, change({{}, "bob", {}, {}}), is_changed, {}, {}},
      {"OfTheCertificateWithoutACredentialIsRefused", has, change({{}, {}, "pem", {}}), is_changed, {}, {}},
      {"ToTheSameAddressNeedsNoCredential", has, change({"https://far:7942", {}, {}, {}}), {}, {after([](Remote&) {})}, bumps},
      {"OfLimitsIsTaken", has, change(good_limits), {}, {after([&](Remote& remote) { remote.limits = *good_limits.limits; })}, bumps},
      {"ForAnotherCredentialVersionIsRefused", has,
       with<ChangeRemote>(change(good_limits), [](ChangeRemote& e) { e.expect_credential_version = 2; }), is_changed, {}, {}},
      {"ForTheCredentialVersionIsTaken", has,
       with<ChangeRemote>(change(good_limits), [](ChangeRemote& e) { e.expect_credential_version = 1; }), {},
       {after([&](Remote& remote) { remote.limits = *good_limits.limits; })}, bumps},
      {"WithACredentialSealedAgainstSomethingElseIsRefusedAndCounted", has, reseal(url, same), is_changed, {seals_are(1, "key2")}, {}},
      {"WithACredentialTakesTheAddress", has, reseal(url, SealedAgainst{"https://other", "ann", ""}), {},
       {after([](Remote& remote) {
          remote.url = "https://other";
          remote.credential = "new";
          remote.fingerprint = "key2";
          remote.credential_version = 2;
        }),
        seals_are(1, "key2")},
       bumps},
      {"UnderAnotherKeyKeepsTheCredentialVersion", has, with<ChangeRemote>(reseal({}, same), [](ChangeRemote& e) { e.reseal = true; }), {},
       {after([](Remote& remote) {
          remote.credential = "new";
          remote.fingerprint = "key2";
        }),
        seals_are(1, "key2")},
       bumps},
  };
}

// ---- 37 --------------------------------------------------------------------------------------------------------------------

RemoteLink link_to(std::string topic) {
  RemoteLink link;
  link.name = "far";
  link.topic = std::move(topic);
  link.created_by = "ann";
  return link;
}

AttachRemoteChild attach(std::string stub = "s") {
  return {"p", kId, std::move(stub), "5555555555555555", "e1", 5000, {1, 2, 3}, link_to("orders"), 123, "ann", "r3"};
}

Topic stub_record(std::string name = "s") {
  Topic stub;
  stub.name = std::move(name);
  stub.id = "5555555555555555";
  stub.created_at = 123;
  stub.role = Role::child;
  stub.parent = "p";
  stub.attach_epoch = "e1";
  stub.fanout_delay_ms = 5000;
  stub.attach_offsets = {1, 2, 3};
  stub.remote = link_to("orders");
  stub.remote->lanes = 1;
  stub.remote->from = "attach";
  return stub;
}

Topic parent_of(std::vector<std::string> children) {
  return with<Topic>(make_topic("p"), [&](Topic& topic) {
    topic.role = Role::parent;
    topic.children = std::move(children);
  });
}

Topic with_retention(Topic topic, int64_t retention_ms) {
  topic.retention_ms = retention_ms;
  return topic;
}

const CreateTopic kP{make_topic("p")};

std::vector<Case> delete_cases() {
  const std::vector<Command> used{create("far"), kP, attach()};
  const std::vector<Bump> bumps{moved(Domain::remotes)};
  return {
      {"OfAMissingRemoteIsRefused", {create("near")}, DeleteRemote{"far", true, "ann", "r"}, {Code::not_found, "remote far"}, {}, {}},
      {"OfAReservedRowIsRefused", {create("near")}, DeleteRemote{"_salt", true, "ann", "r"}, {Code::not_found, "remote _salt"}, {}, {}},
      {"LeavesSaltAndSeals", {create("far")}, DeleteRemote{"far", false, "ann", "r"}, {}, {gone(Bucket::remotes, "far")}, bumps},
      {"OfAUsedRemoteIsRefused", used, DeleteRemote{"far", false, "ann", "r"},
       {Code::remote_in_use, "1 remote children of remote far"}, {}, {}},
      {"OfAUsedRemoteMayBeForced", used, DeleteRemote{"far", true, "ann", "r"}, {}, {gone(Bucket::remotes, "far")}, bumps},
      {"OfARemoteThatIsNoLongerUsedIsTaken", join(used, {DetachChild{"p", "s"}}), DeleteRemote{"far", false, "ann", "r"}, {},
       {gone(Bucket::remotes, "far")}, bumps},
      {"OfARemoteWhoseParentIsGoneIsTaken", join(used, {DeleteTopic{"p"}}), DeleteRemote{"far", false, "ann", "r"}, {},
       {gone(Bucket::remotes, "far")}, bumps},
  };
}

// ---- 33 --------------------------------------------------------------------------------------------------------------------

std::vector<Case> attach_cases() {
  auto changed = [](auto change) {
    AttachRemoteChild entry = attach();
    change(entry);
    return entry;
  };
  // Each entry is wrong in what it is about and in all that is checked later, as far as that can be.
  auto bad = [&](std::string name, auto change, Answer answer) { return Case{std::move(name), {}, changed(change), std::move(answer), {}, {}}; };
  const Answer incomplete{Code::invalid_argument, "a remote child needs a parent, a name, a remote and a topic there"};
  const std::vector<Command> has{create("far"), kP};
  auto under = [&](Topic parent) { return std::vector<Command>{create("far"), CreateTopic{std::move(parent)}}; };
  std::vector<std::string> many;
  for (size_t i = 0; i < kChildrenMax; ++i) {
    many.push_back("k" + std::to_string(i));
  }
  std::vector<Command> sixteen = has;
  for (uint64_t i = 0; i < kRemoteChildrenMax; ++i) {
    sixteen.push_back(with<AttachRemoteChild>(attach("s" + std::to_string(i)), [&](AttachRemoteChild& e) { e.remote.topic += std::to_string(i); }));
  }
  std::vector<Command> fifteen(sixteen.begin(), sixteen.end() - 1);
  std::vector<std::string> sixteen_names;
  for (uint64_t i = 0; i + 1 < kRemoteChildrenMax; ++i) {
    sixteen_names.push_back("s" + std::to_string(i));
  }
  sixteen_names.push_back("s");
  const std::vector<Bump> bumps{moved("p"), moved("s")};
  return {
      bad("WithoutAParentIsRefused", [](AttachRemoteChild& e) { e.parent = ""; e.stub = ""; }, incomplete),
      bad("WithoutANameIsRefused", [](AttachRemoteChild& e) { e.stub = ""; }, incomplete),
      bad("WithoutARemoteIsRefused", [](AttachRemoteChild& e) { e.remote.name = ""; e.stub = "p"; }, incomplete),
      bad("WithoutATopicThereIsRefused", [](AttachRemoteChild& e) { e.remote.topic = ""; e.epoch = ""; }, incomplete),
      bad("ToItselfIsRefused", [](AttachRemoteChild& e) { e.stub = "p"; e.epoch = ""; },
          {Code::fanout_role_conflict, "topic p cannot be its own child"}),
      bad("WithoutAnEpochIsRefused", [](AttachRemoteChild& e) { e.epoch = ""; e.delay_ms = -1; },
          {Code::invalid_argument, "a link without an epoch"}),
      bad("WithADelayBelowZeroIsRefused", [](AttachRemoteChild& e) { e.delay_ms = -1; e.remote.lanes = 9; },
          {Code::invalid_argument, "a delay below 0"}),
      bad("WithADelayOverAYearIsRefused", [](AttachRemoteChild& e) { e.delay_ms = kAttachDelayMaxMs + 1; e.remote.lanes = 9; },
          {Code::fanout_delay_too_long, "more than a year"}),
      bad("WithTooManyLanesIsRefused", [](AttachRemoteChild& e) { e.remote.lanes = 9; e.remote.from = "x"; },
          {Code::invalid_argument, "9 lanes"}),
      bad("WithFewerThanNoLanesIsRefused", [](AttachRemoteChild& e) { e.remote.lanes = -1; }, {Code::invalid_argument, "-1 lanes"}),
      bad("WithAnUnknownStartIsRefused", [](AttachRemoteChild& e) { e.remote.from = "Attach"; },
          {Code::invalid_argument, "a start that does not exist"}),
      {"UnderAMissingParentIsRefused", {}, attach(), {Code::not_found, "topic p"}, {}, {}},
      {"UnderAnotherIncarnationIsRefused", {kP}, changed([](AttachRemoteChild& e) { e.parent_id = "other"; }),
       {Code::topic_changed, "topic p"}, {}, {}},
      {"WithoutAnIncarnationFitsOnlyARecordWithoutOne", {kP}, changed([](AttachRemoteChild& e) { e.parent_id = ""; }),
       {Code::topic_changed, "topic p"}, {}, {}},
      {"UnderAChildIsRefused",
       {CreateTopic{with<Topic>(make_topic("p"), [](Topic& topic) { topic.role = Role::child; topic.parent = "q"; })}}, attach(),
       {Code::fanout_role_conflict, "topic p is a child"}, {}, {}},
      {"ToAMissingRemoteIsRefused", {kP, CreateTopic{make_topic("s")}}, attach(), {Code::remote_child_conflict, "no remote far"}, {}, {}},
      {"ToAReservedRowIsRefused", has, changed([](AttachRemoteChild& e) { e.remote.name = "_salt"; }),
       {Code::remote_child_conflict, "no remote _salt"}, {}, {}},
      {"UnderATakenNameIsRefused", join(under(parent_of(many)), {CreateTopic{make_topic("s")}}), attach(),
       {Code::already_exists, "topic s"}, {}, {}},
      {"UnderAFullParentIsRefused", under(with_retention(parent_of(many), 5)), attach(), {Code::fanout_child_limit, "topic p"}, {}, {}},
      {"OverTheRemoteChildrenIsRefused", join(sixteen, {UpdateTopic{with_retention(make_topic("p"), kDayMs)}}), attach(),
       {Code::remote_child_limit, "topic p"}, {}, {}},
      {"TheSixteenthRemoteChildIsTaken", fifteen, attach(), {}, {is(parent_of(sixteen_names)), is(stub_record())}, bumps},
      {"UnderAShortRetentionIsRefused", under(with_retention(make_topic("p"), kDayMs - 1)),
       changed([](AttachRemoteChild& e) { e.delay_ms = kDayMs; }), {Code::remote_retention_floor, "topic p"}, {}, {}},
      {"WithADelayThatRetentionCannotHoldIsRefused", under(with_retention(make_topic("p"), kDayMs)),
       changed([](AttachRemoteChild& e) { e.delay_ms = kDayMs - kDelayRetentionMarginMs + 1; }),
       {Code::fanout_delay_too_long, "topic p"}, {}, {}},
      {"UnderARetentionOfADayIsTaken", under(with_retention(make_topic("p"), kDayMs)), attach(), {},
       {is(with_retention(parent_of({"s"}), kDayMs)), is(stub_record())}, bumps},
      {"UnderEndlessRetentionIsTaken", under(with_retention(make_topic("p"), 0)), attach(), {},
       {is(with_retention(parent_of({"s"}), 0)), is(stub_record())}, bumps},
      {"ToALinkedTargetIsRefused",
       {create("far"), kP, attach("z"), CreateTopic{with<Topic>(make_topic("q"), [](Topic& topic) { topic.id = ""; })}},
       changed([](AttachRemoteChild& e) { e.parent = "q"; e.parent_id = ""; }),
       {Code::remote_target_linked, "topic orders of remote far"}, {}, {}},
      {"ToATargetThatIsFreeAgainIsTaken", {create("far"), kP, attach("z"), DetachChild{"p", "z"}}, attach(), {},
       {is(parent_of({"s"})), is(stub_record())}, bumps},
      {"MakesAStubWithoutPauseOrSkips", has, changed([](AttachRemoteChild& e) {
         e.remote.lanes = 8;
         e.remote.from = "earliest";
         e.remote.target_id = "there";
         e.remote.paused = true;
         e.remote.pause_reason = "x";
         e.remote.paused_by = "y";
         e.remote.paused_at_ms = 5;
         e.remote.skip[1] = {2};
       }),
       {},
       {is(parent_of({"s"})), is(with<Topic>(stub_record(), [](Topic& topic) {
          topic.remote->lanes = 8;
          topic.remote->from = "earliest";
          topic.remote->target_id = "there";
        }))},
       bumps},
  };
}

// ---- 34 --------------------------------------------------------------------------------------------------------------------

std::vector<Case> state_cases() {
  const std::vector<Command> has{create("far"), kP, attach()};
  const ChangeRemoteChild none{"p", "s", "e1", {}, {}, {}, {}, "ann", "r4"};
  auto change = [&](auto edit) { return with<ChangeRemoteChild>(none, edit); };
  auto after = [](auto edit) { return is(with<Topic>(stub_record(), [&](Topic& topic) { edit(*topic.remote); })); };
  const ChangeRemoteChild pause = change([](ChangeRemoteChild& e) { e.pause = PauseChange{true, "why", "ann", 9}; });
  const Answer missing{Code::not_found, "remote child s of topic p"};
  const Answer reason{Code::invalid_argument, "a reason that is too long or cannot be printed"};
  const Answer below{Code::invalid_argument, "a partition or offset below 0"};
  const std::vector<Bump> bumps{moved("s")};
  auto skip = [&](int32_t partition, int64_t offset) {
    return change([&](ChangeRemoteChild& e) { e.skip = SkipOffset{partition, offset}; });
  };
  Topic full = stub_record("t");
  for (size_t i = 0; i < kSkippedMax; ++i) {
    full.remote->skip[3].push_back(static_cast<int64_t>(2 * i));
  }
  Topic broad = stub_record("t");
  for (size_t i = 0; i < kSkippingMax; ++i) {
    broad.remote->skip[static_cast<int32_t>(i)] = {1};
  }
  const Topic broader = with<Topic>(broad, [](Topic& topic) { topic.remote->skip[1] = {1, 9}; });
  auto on_broad = [&](int32_t partition) {
    return change([&](ChangeRemoteChild& e) {
      e.stub = "t";
      e.skip = SkipOffset{partition, 9};
    });
  };
  auto on_full = [&](int64_t offset) {
    return change([&](ChangeRemoteChild& e) {
      e.stub = "t";
      e.skip = SkipOffset{3, offset};
    });
  };
  return {
      {"OfAMissingStubIsRefused", {kP}, pause, missing, {}, {}},
      {"OfALocalChildIsRefused", {kP, CreateTopic{make_topic("s")}, AttachChild{"p", "s", "e1", 0, {}}}, pause, missing, {}, {}},
      {"OfAnothersStubIsRefused", has, change([](ChangeRemoteChild& e) { e.parent = "q"; }),
       {Code::not_found, "remote child s of topic q"}, {}, {}},
      {"OfAnotherEpochIsRefused", has, change([](ChangeRemoteChild& e) { e.epoch = "e2"; e.lanes = 9; }),
       {Code::remote_child_stale, "topic s"}, {}, {}},
      {"WithALongReasonIsRefused", has,
       change([](ChangeRemoteChild& e) { e.pause = PauseChange{true, std::string(kPauseReasonMax + 1, 'x'), "ann", 9}; }), reason, {}, {}},
      {"WithAnUnprintableReasonIsRefused", has, change([](ChangeRemoteChild& e) { e.pause = PauseChange{true, "a\x1b[0m", "ann", 9}; }), reason,
       {}, {}},
      {"WithAReasonThatIsNoTextIsRefused", has, change([](ChangeRemoteChild& e) { e.pause = PauseChange{true, "\xc3", "ann", 9}; }), reason, {},
       {}},
      {"WithoutLanesIsRefused", has, change([](ChangeRemoteChild& e) { e.lanes = 0; }), {Code::invalid_argument, "0 lanes"}, {}, {}},
      {"WithTooManyLanesIsRefused", has, change([](ChangeRemoteChild& e) { e.lanes = 9; }), {Code::invalid_argument, "9 lanes"}, {}, {}},
      {"WithAPartitionBelowZeroIsRefused", has, skip(-1, 5), below, {}, {}},
      {"WithAnOffsetBelowZeroIsRefused", has, skip(1, -5), below, {}, {}},
      {"PausesWithReasonAndName", has, pause, {}, {after([](RemoteLink& link) {
         link.paused = true;
         link.pause_reason = "why";
         link.paused_by = "ann";
         link.paused_at_ms = 9;
       })},
       bumps},
      {"ResumingClearsReasonNameAndTime", join(has, {pause}), change([](ChangeRemoteChild& e) { e.pause = PauseChange{false, "x", "y", 7}; }), {},
       {after([](RemoteLink&) {})}, bumps},
      {"ChangesOnlyTheFieldsGiven", join(has, {pause, skip(1, 5)}), change([](ChangeRemoteChild& e) {
         e.lanes = 8;
         e.target_id = "there";
       }),
       {}, {after([](RemoteLink& link) {
         link.paused = true;
         link.pause_reason = "why";
         link.paused_by = "ann";
         link.paused_at_ms = 9;
         link.skip[1] = {5};
         link.lanes = 8;
         link.target_id = "there";
       })},
       bumps},
      {"KeepsSkipsInOrder", join(has, {skip(1, 5), skip(1, 9), skip(0, 7)}), skip(1, 6), {}, {after([](RemoteLink& link) {
         link.skip[0] = {7};
         link.skip[1] = {5, 6, 9};
       })},
       bumps},
      {"TakesASkipAgain", join(has, {skip(1, 5)}), skip(1, 5), {}, {}, bumps},
      {"OverThePartitionsThatSkipIsRefused", {CreateTopic{broad}}, on_broad(static_cast<int32_t>(kSkippingMax)),
       {Code::invalid_argument, "1024 partitions skip offsets already"}, {}, {}},
      {"OfAPartitionThatSkipsIsTakenHoweverManyDo", {CreateTopic{broad}}, on_broad(1), {}, {is(broader)}, {moved("t")}},
      {"OverTheSkipsIsRefused", {CreateTopic{full}}, on_full(1), {Code::invalid_argument, "partition 3 skips 4000 offsets already"}, {}, {}},
      {"OneOfTheSkipsIsTakenAgain", {CreateTopic{full}}, on_full(2), {}, {}, {moved("t")}},
  };
}

struct ApplyRemotes : tests::ApplyTable {};

TEST_P(ApplyRemotes, AnswersAndChangesAsTheTableSays) { run(GetParam()); }

constexpr auto kName = [](const testing::TestParamInfo<Case>& info) { return info.param.name; };

INSTANTIATE_TEST_SUITE_P(Create, ApplyRemotes, testing::ValuesIn(create_cases()), kName);
INSTANTIATE_TEST_SUITE_P(Change, ApplyRemotes, testing::ValuesIn(change_cases()), kName);
INSTANTIATE_TEST_SUITE_P(Delete, ApplyRemotes, testing::ValuesIn(delete_cases()), kName);
INSTANTIATE_TEST_SUITE_P(Attach, ApplyRemotes, testing::ValuesIn(attach_cases()), kName);
INSTANTIATE_TEST_SUITE_P(State, ApplyRemotes, testing::ValuesIn(state_cases()), kName);

TEST(RemoteSeals, AKeyThatHasSealedEnoughIsExhaustedAndStillCounted) {
  tests::AppliedRows applied;
  ASSERT_TRUE(applied.answer_of(create("far")).ok());
  WriteSet set(applied.rows, applied.state.digest);
  set_counter(set, Bucket::remotes, seals_row("key1"), kSealsMax - 1);
  set.keep_entry();
  applied.rows.take(set);
  applied.state.digest = set.digest();
  ASSERT_TRUE(applied.answer_of(create("last")).ok());
  EXPECT_EQ(applied.answer_of(create("more")), (Answer{Code::remote_key_exhausted, "key key1"}));
  ChangeRemote change{"far", {}, "new", "key1", SealedAgainst{"https://far:7942", "ann", ""}, 0, {}, true, 1, "ann", "r"};
  EXPECT_EQ(applied.answer_of(change), (Answer{Code::remote_key_exhausted, "key key1"}));
  EXPECT_EQ(decode_counter(*applied.rows.read("remotes/_seals/key1")), kSealsMax + 2);
  change.fingerprint = "key2";
  EXPECT_TRUE(applied.answer_of(change).ok());
}

}  // namespace
