#include "tests/integration/process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "engine/api/http_codec.h"
#include "tests/support/paths.h"

namespace tests {

namespace {

using Clock = std::chrono::steady_clock;

int remaining_ms(Clock::time_point end) {
  return static_cast<int>(std::max<int64_t>(0, std::chrono::duration_cast<Milliseconds>(end - Clock::now()).count()));
}

// A connected socket, closed with its object.
class Socket {
 public:
  Socket(uint16_t port, Clock::time_point end) : end_(end) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
      close(fd_);
      fd_ = -1;
    }
  }
  ~Socket() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  bool is_open() const { return fd_ >= 0; }
  bool write_all(const std::string& bytes) {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t sent = send(fd_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) {
        return false;
      }
      at += static_cast<size_t>(sent);
    }
    return true;
  }
  void end_writing() { shutdown(fd_, SHUT_WR); }
  // Empty at the end, on an error and when time is over.
  std::string read_some() {
    pollfd ready{fd_, POLLIN, 0};
    if (poll(&ready, 1, remaining_ms(end_)) <= 0) {
      return {};
    }
    std::string bytes(64 * 1024, '\0');
    const ssize_t got = recv(fd_, bytes.data(), bytes.size(), 0);
    bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return bytes;
  }

 private:
  int fd_ = -1;
  Clock::time_point end_;
};

}  // namespace

TempDir::TempDir() {
  std::string pattern = std::filesystem::temp_directory_path() / "narad-test-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) {
    throw std::runtime_error("no temporary directory");
  }
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

SmallDisk::SmallDisk(uint64_t bytes, bool read_only) : path_(dir_.path()) { mount_it(bytes, read_only); }

SmallDisk::SmallDisk(uint64_t bytes, std::string directory) : path_(std::move(directory)) { mount_it(bytes, false); }

void SmallDisk::mount_it(uint64_t bytes, bool read_only) {
  const std::string options = "size=" + std::to_string(bytes);
  const bool is_done = mount("tmpfs", path_.c_str(), "tmpfs", read_only ? MS_RDONLY : 0, options.c_str()) == 0;
  error_ = is_done ? 0 : errno;
}

SmallDisk::~SmallDisk() {
  if (is_mounted()) {
    umount2(path_.c_str(), MNT_DETACH);
  }
}

std::string SmallDisk::why_not() const { return "a file system cannot be mounted here: " + std::string(std::strerror(error_)); }

void SmallDisk::fill() {
  std::ofstream ballast(path_ + "/ballast", std::ios::binary | std::ios::app);
  const std::string block(4096, 'x');
  while (ballast.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
  }
}

void SmallDisk::make_room() { std::filesystem::remove(path_ + "/ballast"); }

uint16_t free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    close(fd);
    throw std::runtime_error("no free port");
  }
  close(fd);
  return ntohs(address.sin_port);
}

// ---- Process -----------------------------------------------------------------------------------------------------------------

Process::Process(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& environment,
                 const std::string& log_file) {
  std::vector<std::string> settings;
  for (const auto& [name, value] : environment) {
    settings.push_back(name + "=" + value);
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::string_view(*entry).substr(0, 6) != "NARAD_") {
      settings.emplace_back(*entry);
    }
  }
  std::vector<char*> argv;
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  std::vector<char*> envp;
  for (const std::string& setting : settings) {
    envp.push_back(const_cast<char*>(setting.c_str()));
  }
  envp.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int log = open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
}

Process::~Process() {
  if (is_running()) {
    signal(SIGKILL);
    (void)wait(30s);
  }
}

void Process::signal(int number) {
  if (!status_.has_value()) {
    kill(pid_, number);
  }
}

bool Process::is_running() { return !wait(0ms).has_value(); }

std::optional<int> Process::wait(Milliseconds patience) {
  const auto end = Clock::now() + patience;
  while (!status_.has_value()) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      break;
    }
    if (Clock::now() >= end) {
      return std::nullopt;
    }
    usleep(2000);
  }
  return status_;
}

// ---- NodeProcess -------------------------------------------------------------------------------------------------------------

NodeProcess::NodeProcess(std::string id, std::string data_dir, std::string log_file, uint16_t http_port, uint16_t cluster_port)
    : id_(std::move(id)),
      data_dir_(std::move(data_dir)),
      log_file_(std::move(log_file)),
      http_port_(http_port),
      cluster_port_(cluster_port) {}

void NodeProcess::start(const std::vector<std::string>& more_flags) {
  std::map<std::string, std::string> environment = {{"NARAD_HTTP_ADDR", http_address()},
                                                    {"NARAD_CLUSTER_ADDR", cluster_address()},
                                                    {"NARAD_NODE_ID", id_},
                                                    {"NARAD_DATA_DIR", data_dir_},
                                                    {"NARAD_LOG_FORMAT", "text"}};
  if (!peers_.empty()) {
    environment["NARAD_CLUSTER_PEERS"] = peers_;
  }
  for (const auto& [name, value] : settings_) {
    environment[name] = value;
  }
  std::vector<std::string> arguments = {narad_program(), "serve"};
  arguments.insert(arguments.end(), more_flags.begin(), more_flags.end());
  process_ = std::make_unique<Process>(arguments, environment, log_file_);
}

void NodeProcess::kill9() {
  process_->signal(SIGKILL);
  (void)process_->wait(30s);
}

std::optional<int> NodeProcess::stop(Milliseconds patience) {
  process_->signal(SIGTERM);
  return process_->wait(patience);
}

std::optional<engine::api::HttpResponse> NodeProcess::request(std::string method, std::string target, std::string body,
                                                              Milliseconds patience) const {
  using engine::api::HttpResponseParser;
  Socket socket(http_port_, Clock::now() + patience);
  if (!socket.is_open()) {
    return std::nullopt;
  }
  engine::api::HttpRequest request{std::move(method), std::move(target), {{"X-Narad-Client", "test"}, {"Connection", "close"}},
                                   std::move(body)};
  if (!socket.write_all(engine::api::encode_request(request, http_address()))) {
    return std::nullopt;
  }
  HttpResponseParser parser(request.method == "HEAD");
  std::string buffer;
  while (true) {
    const std::string bytes = socket.read_some();
    buffer += bytes;
    const HttpResponseParser::State state = bytes.empty() ? parser.end() : parser.parse(buffer);
    if (state == HttpResponseParser::State::complete) {
      return parser.take();
    }
    if (state == HttpResponseParser::State::failed || bytes.empty()) {
      return std::nullopt;
    }
  }
}

std::optional<double> NodeProcess::metric(const std::string& name) const {
  const auto response = request("GET", "/metrics", {}, 2s);
  if (!response.has_value() || response->status != 200) {
    return std::nullopt;
  }
  std::istringstream lines(response->body);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(name + " ", 0) == 0) {
      return std::stod(line.substr(name.size() + 1));
    }
  }
  return std::nullopt;
}

bool NodeProcess::is_ready() const {
  const auto response = request("GET", "/readyz", {}, 2s);
  return response.has_value() && response->status == 200;
}

bool NodeProcess::is_leader() const { return metric("narad_raft_state{state=\"leader\"}").value_or(0) == 1; }

bool NodeProcess::wait_ready(Milliseconds patience) const {
  return eventually([this] { return is_ready(); }, patience);
}

std::string NodeProcess::log() const {
  std::ifstream file(log_file_);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string talk_raw(uint16_t port, const std::string& bytes, bool end, Milliseconds patience) {
  Socket socket(port, Clock::now() + patience);
  if (!socket.is_open()) {
    return {};
  }
  (void)socket.write_all(bytes);
  if (end) {
    socket.end_writing();
  }
  std::string all;
  while (true) {
    const std::string some = socket.read_some();
    if (some.empty()) {
      return all;
    }
    all += some;
  }
}

}  // namespace tests
