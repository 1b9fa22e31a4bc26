// SPDX-License-Identifier: Apache-2.0
// A whole server with sockets under clients of every kind at once, models that are loaded again and
// a drain at the end: what the sanitizers look at.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <thread>

#include "server/serve.h"
#include "support/small_model.h"

namespace toto::server {
namespace {

using nlohmann::json;

/// What comes back for these bytes, until the server closes. `impatient`: goes without reading.
std::string talk(std::uint16_t port, const std::string& bytes, bool impatient = false) {
  const int s = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string out;
  if (::connect(s, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) {
    (void)::send(s, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    std::string piece(4096, '\0');
    for (ssize_t n = 1; n > 0 && !impatient;) {
      n = ::recv(s, piece.data(), piece.size(), 0);
      if (n > 0) out.append(piece, 0, static_cast<std::size_t>(n));
    }
  }
  ::close(s);
  return out;
}

std::string message(const std::string& method, const std::string& path, const std::string& body,
                    const std::string& more = {}) {
  return method + " " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + more +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string forecast_body(std::size_t kind) {
  json target = json::array();
  for (std::size_t t = 0; t < 20 + kind; ++t) target.push_back((t * (kind + 3)) % 11);
  return json({{"model", "small"},
               {"inputs", {{{"target", target}}, {{"target", target}, {"item_id", "b"}}}},
               {"parameters",
                {{"prediction_length", 4 + kind}, {"quantile_levels", {0.5}}, {"num_samples", 6}}}})
      .dump();
}

/// The outputs of an answer; the rest has an id.
std::string outputs_of(const std::string& answer) {
  const std::size_t from = answer.find("\"outputs\"");
  return from == std::string::npos ? answer
                                   : answer.substr(from, answer.find("\"input_points\"") - from);
}

class ServerLoad : public testing::Test {
 protected:
  ServerLoad() {
    store_ = (std::filesystem::temp_directory_path() /
              ("toto_server_load." + std::to_string(::getpid())))
                 .string();
    remove_store();
    ServeOptions options;
    options.transport.port = 0;
    options.app.live.path = store_;
    options.app.log = [this](std::string_view) { ++lines_; };
    server_.emplace(options, std::vector<ModelSource>{{"small", [] {
                                                         return std::vector<Model>{test::make_model(
                                                             test::spec_config(), false, {}, 0)};
                                                       }}});
  }
  ~ServerLoad() override {
    server_.reset();
    remove_store();
  }
  void remove_store() const {
    for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(store_ + end);
  }
  std::string ask(const std::string& bytes) const { return talk(server_->port(), bytes); }

  std::string store_;
  std::atomic<std::size_t> lines_{0};
  std::optional<Server> server_;
};

constexpr std::size_t kKinds = 6;

TEST_F(ServerLoad, ClientsOfEveryKindAtOnce) {
  std::vector<std::string> alone;
  for (std::size_t i = 0; i < kKinds; ++i) {
    const std::string answer = ask(message("POST", "/v1/forecast", forecast_body(i)));
    ASSERT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
    alone.push_back(outputs_of(answer));
  }
  std::atomic<int> other{0};
  std::vector<std::thread> clients;
  for (std::size_t c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      for (std::size_t n = 0; n < 12; ++n) {
        const std::size_t kind = (c + n) % kKinds;
        const auto answer = ask(message("POST", "/v1/forecast", forecast_body(kind)));
        other += outputs_of(answer) == alone[kind] ? 0 : 1;
      }
    });
  }
  clients.emplace_back([&] {  // lines
    std::string body;
    for (std::size_t n = 0; n < 100; ++n) body += forecast_body(n % kKinds) + "\n";
    const auto answer =
        ask(message("POST", "/v1/forecast", body, "Content-Type: application/x-ndjson\r\n"));
    std::size_t count = 0;
    for (std::size_t at = answer.find("\"outputs\""); at != std::string::npos;
         at = answer.find("\"outputs\"", at + 1)) {
      other += outputs_of(answer.substr(at)) == alone[count++ % kKinds] ? 0 : 1;
    }
    other += count == 100 ? 0 : 1;
  });
  clients.emplace_back([&] {  // events
    for (std::size_t n = 0; n < 8; ++n) {
      const auto answer = ask(message("POST", "/v1/forecast", forecast_body(n % kKinds),
                                      "Accept: text/event-stream\r\n"));
      other +=
          answer.find("event: done\ndata: {\"done\":2,\"failed\":0") == std::string::npos ? 1 : 0;
    }
  });
  for (const char* id : {"a", "b"}) {  // live series
    clients.emplace_back([&, path = std::string("/v1/series/") + id] {
      other +=
          ask(message("PUT", path, R"({"values": [1, 2, 3]})")).starts_with("HTTP/1.1 201") ? 0 : 1;
      for (std::size_t n = 0; n < 15; ++n) {
        const auto at = std::to_string(3 + n);
        const auto added =
            ask(message("POST", path + "/points", R"({"values": [4], "at": )" + at + "}"));
        other += added.starts_with("HTTP/1.1 200") ? 0 : 1;
        if (n % 5 == 0) {
          const auto seen = ask(message("GET", path + "/forecast?horizon=3&num_samples=4", ""));
          other += seen.starts_with("HTTP/1.1 200") ? 0 : 1;
          (void)ask(message("GET", path + "/anomalies", ""));
        }
      }
    });
  }
  clients.emplace_back([&] {  // clients that go
    for (std::size_t n = 0; n < 20; ++n) {
      (void)talk(server_->port(), message("POST", "/v1/forecast", forecast_body(n % kKinds)), true);
      (void)talk(server_->port(),
                 "POST /v1/forecast HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{", true);
      (void)talk(server_->port(),
                 message("POST", "/v1/forecast", forecast_body(0) + "\n" + forecast_body(1),
                         "Content-Type: application/x-ndjson\r\n"),
                 true);
      (void)ask(message("GET", "/metrics", ""));
    }
  });
  clients.emplace_back([&] {
    for (int n = 0; n < 3; ++n) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      server_->reload();
    }
  });
  for (std::thread& one : clients) one.join();
  EXPECT_EQ(other, 0);
  EXPECT_TRUE(server_->drain());
  EXPECT_GT(lines_, 100U);
}

TEST(ServerReload, AModelThatDoesNotLoadLeavesTheOldOne) {
  std::atomic<bool> full{false};
  ServeOptions options;
  options.transport.port = 0;
  std::string log;
  options.app.log = [&log](std::string_view line) {
    if (line.find("reload_failed") != line.npos) log += line;
  };
  Server server(options,
                {{"small", [&full] {
                    if (full) throw std::bad_alloc();
                    return std::vector<Model>{test::make_model(test::spec_config(), false, {}, 0)};
                  }}});
  full = true;
  server.reload();
  EXPECT_NE(log.find("out_of_memory"), std::string::npos);
  const std::string body = forecast_body(0);
  const std::string answer = talk(server.port(), message("POST", "/v1/forecast", body));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
}

TEST_F(ServerLoad, AnEndUnderLoadAnswersOrCloses) {
  std::atomic<int> odd{0};
  std::vector<std::thread> clients;
  for (std::size_t c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      for (std::size_t n = 0; n < 10; ++n) {
        const auto answer = ask(message("POST", "/v1/forecast", forecast_body((c + n) % kKinds)));
        // Once it has ended nothing listens any more.
        odd += answer.empty() || answer.starts_with("HTTP/1.1 200") ? 0 : 1;
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_TRUE(server_->drain());
  for (std::thread& one : clients) one.join();
  EXPECT_EQ(odd, 0);
}

}  // namespace
}  // namespace toto::server
