// SPDX-License-Identifier: Apache-2.0
// toto serve: forecasts over HTTP until a signal ends it.
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <thread>

#include "cli/process.h"
#include "cli/serve_options.h"
#include "core/cpu_info.h"
#include "models/checkpoint/shipped_model.h"

namespace toto::cli {
namespace {

/// Signals that this command waits for, blocked in every thread from here on.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set_, signal);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  /// The next one, or 0 after this time.
  [[nodiscard]] int wait(std::chrono::milliseconds time) const {
    const timespec limit = {time.count() / 1000, time.count() % 1000 * 1'000'000};
    const int signal = sigtimedwait(&set_, nullptr, &limit);
    return signal < 0 ? 0 : signal;
  }

 private:
  sigset_t set_ = {};
};

/// Ends at once, as the signal would have ended it.
[[noreturn]] void end_by(int signal) {
  ::signal(signal, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  ::raise(signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ::_exit(128 + signal);
}

/// As many connections as the system lets us have.
void raise_file_limit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/// A quarter of the machine's memory: what one model may work with unless --memory-limit says more.
std::uint64_t part_of_memory() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) / 4;
}

/// A GPU leaves the cores to those who read and write; on the CPU they would take them from the
/// forecasts.
int io_threads(const ServeRequest& request, const LoadOptions& load) {
  const bool gpu = request.devices.empty() ? load.device != Device::cpu && cuda_devices() > 0
                                           : request.devices.find("cuda") != std::string::npos;
  return gpu ? std::max(2, available_cores() / 2) : 2;
}

/// "load=models/toto-nano-2" is the model under the name load; without a name the last part of what
/// names it.
server::ModelSource source_of(const std::string& text, const ServeRequest& request,
                              const LoadOptions& load) {
  server::ModelSource source;
  ModelQuery query = request.query;
  query.environment = Environment::ignored;
  query.model = text;
  const std::size_t equals = text.find('=');
  if (equals != std::string::npos && equals > 0 && text.find('/') > equals) {
    source.name = text.substr(0, equals);
    query.model = text.substr(equals + 1);
  } else if (!text.empty()) {
    std::filesystem::path path(text);
    if (!path.has_filename()) path = path.parent_path();
    source.name = path.extension() == ".safetensors" ? path.parent_path().filename().string()
                                                     : path.filename().string();
  }
  if (source.name.empty()) source.name = kShippedModel;
  source.load = [query, load, devices = request.devices] {
    if (devices.empty()) return std::vector<Model>{Model::load(query, load)};
    return load_replicas(query, load, parse_devices(devices));
  };
  return source;
}

ExitStatus serve(ServeRequest& request, const Session& session) {
  const Signals signals;
  check(request);
  raise_file_limit();
  const Settings settings = resolve_settings(request.settings);
  const LoadOptions load = load_options(settings, session);
  server::ServeOptions& options = request.serve;
  options.service.forecaster = forecaster_options(settings);
  options.service.memory_limit = settings.memory_limit.value;
  if (options.service.memory_limit == 0 && load.device != Device::cuda) {
    options.service.memory_limit = part_of_memory();
  }
  options.app.log = [quiet = request.quiet_requests](std::string_view line) {
    if (!quiet || line.find("\"event\":\"request\"") == std::string_view::npos) {
      write_to_stderr(line);
    }
  };
  if (options.transport.threads == 0) options.transport.threads = io_threads(request, load);
  std::vector<server::ModelSource> sources;
  if (request.models.empty()) request.models.push_back(settings.model.value);
  sources.reserve(request.models.size());
  for (const std::string& model : request.models) {
    sources.push_back(source_of(model, request, load));
  }

  server::Server server(options, std::move(sources));
  options.app.log(server::event_line(
      "info", "listening", fmt::format("http://{}:{}", options.transport.address, server.port())));

  // Threads for what takes a while, so that signals are still heard.
  std::thread reloading;
  std::thread ending;
  std::atomic<bool> busy{false};
  std::atomic<int> drained{-1};
  bool draining = false;
  bool again = false;  // models are to be loaded again
  while (drained < 0 || busy) {
    const int signal = signals.wait(std::chrono::milliseconds(draining ? 5 : 500));
    if (signal == SIGHUP) again = true;  // while models are being loaded: once more after that
    if (again && !busy && !draining) {
      again = false;
      if (reloading.joinable()) reloading.join();
      busy = true;
      reloading = std::thread([&server, &busy] {
        server.reload();
        busy = false;
      });
    }
    if (signal == SIGTERM || signal == SIGINT) {
      if (draining) end_by(signal);
      draining = true;
      server.begin_drain();  // before it is said
      options.app.log(server::event_line("info", "draining", "open requests end, then I do"));
      ending = std::thread([&server, &drained] { drained = server.drain() ? 1 : 0; });
    }
    if (!busy && !draining) server.sweep();
  }
  if (reloading.joinable()) reloading.join();
  ending.join();
  options.app.log(server::event_line(drained == 1 ? "info" : "warning", "ended",
                                     drained == 1
                                         ? "nothing was open any more"
                                         : "requests were cancelled after --drain-timeout"));
  return ExitStatus::ok;
}

}  // namespace

void add_serve(const Command& app, Session& session) {
  auto request = std::make_shared<ServeRequest>();
  const Command command = add_command(
      app, session, "serve",
      "Forecasts over HTTP: the time series API of KServe, the Open Inference Protocol, the form "
      "of tsfm.ai (docs/serving.md). A request that finds the device idle begins at once, what "
      "comes while it is busy is computed together, and no forecast has other bits for it. "
      "SIGTERM ends it once open requests are answered, SIGHUP loads the models again. Every flag "
      "of a server is a variable too: --max-body is TOTO_SERVE_MAX_BODY.",
      "  toto serve\n"
      "  toto serve --model models/toto-nano-2 --port 8080\n"
      "  toto serve --model load=a/model --model traffic=another/model --host 0.0.0.0\n"
      "  curl http://127.0.0.1:8000/health\n");
  add_serve_options(command, *request);
  command.callback([request, &session] {
    session.run = [request, &session] { return serve(*request, session); };
  });
}

}  // namespace toto::cli
