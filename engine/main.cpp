// narad: the node's program. `narad serve` runs a node, `narad version` says which, `narad metastore` looks at the directory of one
// that does not run.
//
// This file and io/real are the only places that touch the machine: the environment, the command line and the configuration file
// are read here and handed on as values.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>

#include "engine/config.h"
#include "engine/node.h"
#include "engine/offline/dump.h"
#include "engine/offline/inspect.h"
#include "engine/version.h"
#include "io/real/host.h"

extern char** environ;

namespace {

constexpr int kExitRefused = 1;
constexpr int kExitUsage = 2;

std::map<std::string, std::string> narad_environment() {
  std::map<std::string, std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (text.starts_with("NARAD_") && equals != std::string_view::npos) {
      names.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return names;
}

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0' ? std::string(name) : std::string("narad");
}

int refuse(const std::string& reason) {
  std::fprintf(stderr, "narad: %s\n", reason.c_str());
  return kExitRefused;
}

// What a first user can try, once the node serves. To standard output, apart from the log.
void print_welcome(const std::string& address) {
  const char* at = address.c_str();
  std::printf("narad is listening on http://%s. Try:\n", at);
  std::printf("  curl -s -X POST http://%s/v1/topics -H 'Content-Type: application/json' -d '{\"name\":\"orders\"}'\n", at);
  std::printf("  curl -s http://%s/v1/topics/orders\n", at);
  std::printf("  curl -s http://%s/v1/topics\n", at);
  std::fflush(stdout);
}

// What `narad serve --help` says behind the flags.
std::string settings_without_flag() {
  std::string text = "Settings without a flag, by environment name and key of the configuration file:\n";
  for (const engine::Setting& setting : engine::settings()) {
    if (setting.flag.empty()) {
      text += "  " + std::string(setting.environment) + " (" + std::string(setting.key) + "): ";
      text += std::string(setting.help) + "\n";
    }
  }
  return text;
}

io::real::HostSettings host_settings(const engine::Config& config) {
  io::real::HostSettings settings;
  settings.data_dir = config.storage.data_dir;
  settings.io = *io::real::parse_io_choice(config.io);
  settings.log.level = config.log.level;
  settings.log.format =
      config.log.format == engine::LogFormat::json ? io::real::LogFormat::json : io::real::LogFormat::text;
  return settings;
}

struct ServeFlags {
  std::string config_file;
  std::map<std::string, std::string> values;  // by configuration key
  bool insecure = false;
  bool dev = false;
};

int serve(const ServeFlags& given) {
  engine::ConfigSources sources;
  sources.environment = narad_environment();
  sources.flags = given.values;
  if (given.insecure) {
    sources.flags["insecure"] = "true";
  }
  if (given.dev && !sources.flags.contains("log.format")) {
    sources.flags["log.format"] = "text";
  }
  if (!given.config_file.empty()) {
    std::ifstream file(given.config_file);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) {
      return refuse("config: config: load file: cannot read " + given.config_file + ": " + std::strerror(errno));
    }
    sources.file_name = given.config_file;
    sources.file_text = text.str();
  }
  sources.default_node_id = host_name();
  io::Result<engine::Config> config = engine::load_config(sources);
  if (!config.ok()) {
    return refuse(config.error().message);
  }
  io::Result<std::unique_ptr<io::real::Host>> host = io::real::Host::make(host_settings(*config));
  if (!host.ok()) {
    return refuse(host.error().message);
  }
  engine::Hooks hooks;
  if (given.dev) {
    hooks.started = [](const engine::NodeView& view) { print_welcome(view.http_address); };
  }
  std::string reason;
  const int code = (*host)->run(
      [&](io::Env& env, io::Event& stop) { return engine::run_node(env, *config, hooks, stop, &reason); });
  return reason.empty() ? code : refuse(reason);
}

// Runs a tool that reads a data directory: what it prints goes to standard output, why it could not to standard error.
int look(const std::string& directory, const std::function<io::Status(io::Env&)>& tool) {
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) {
    return refuse("metastore: " + directory + ": no such directory");
  }
  io::real::HostSettings settings;
  settings.data_dir = directory;
  settings.io = io::real::IoChoice::epoll;
  settings.log = {io::LogLevel::error, io::real::LogFormat::text};
  settings.handle_signals = false;
  io::Result<std::unique_ptr<io::real::Host>> host = io::real::Host::make(settings);
  if (!host.ok()) {
    return refuse("metastore: " + host.error().message);
  }
  io::Status status;
  (*host)->run([&](io::Env& env, io::Event&) {
    status = tool(env);
    return 0;
  });
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return refuse("metastore: standard output cannot be written");
  }
  return status.ok() ? 0 : refuse("metastore: " + directory + ": " + status.error().message);
}

void print_line(std::string_view line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Narad: a replicated topic store");
  app.require_subcommand(1);
  CLI::App* version = app.add_subcommand("version", "print the version");
  CLI::App* serve_command = app.add_subcommand("serve", "run a node");
  CLI::App* metastore = app.add_subcommand("metastore", "look at the data directory of a node that does not run");
  metastore->require_subcommand(1);
  CLI::App* dump = metastore->add_subcommand("dump", "print what the metastore holds, one JSON object a line");
  CLI::App* inspect = metastore->add_subcommand(
      "inspect", "print what fsm.db, the raft log and the snapshots hold, and what a start would make of them");
  std::string directory;
  inspect->add_option("DIR", directory, "the data directory")->required();
  dump->add_option("DIR", directory, "the data directory")->required();
  metastore->footer("Nothing in the directory is changed. Exit codes: 0 read, 1 refused or not readable (one line says why), 2 usage.");

  ServeFlags flags;
  serve_command->footer(settings_without_flag());
  serve_command->add_option("--config", flags.config_file, "JSON configuration file");
  for (const engine::Setting& setting : engine::settings()) {
    if (setting.flag.empty() || setting.key == "insecure") {
      continue;
    }
    std::string help(setting.help);
    if (!setting.environment.empty()) {
      help += " (" + std::string(setting.environment) + ")";
    }
    serve_command->add_option_function<std::string>(
        std::string(setting.flag),
        [&flags, key = std::string(setting.key)](const std::string& value) { flags.values[key] = value; }, help);
  }
  serve_command->add_option_function<std::string>(
      "--port", [&flags](const std::string& value) { flags.values["http.port"] = value; }, "port of the HTTP API");
  serve_command->add_option_function<std::string>(
      "--cluster-port", [&flags](const std::string& value) { flags.values["cluster.port"] = value; },
      "port of the cluster listener");
  serve_command->add_flag("--insecure", flags.insecure,
                          "allow listeners that other machines can reach, although there is no authentication yet");
  serve_command->add_flag("--dev", flags.dev, "text logs, and three commands to try once the node serves");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  if (version->parsed()) {
    std::printf("narad %s\n", std::string(engine::kVersion).c_str());
    return 0;
  }
  if (inspect->parsed()) {
    return look(directory, [](io::Env& env) { return engine::offline::inspect(env, print_line); });
  }
  if (dump->parsed()) {
    return look(directory, [](io::Env& env) { return engine::offline::dump(env, print_line); });
  }
  return serve(flags);
}
