// SPDX-License-Identifier: Apache-2.0
// Connections alone: what they answer without an app behind them.
#include "server/transport.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace toto::server {
namespace {

/// What comes back for these bytes, until the server closes or has been silent for 10 s.
std::string talk(std::uint16_t port, const std::string& bytes) {
  const int s = ::socket(AF_INET, SOCK_STREAM, 0);
  const timeval patience = {10, 0};
  ::setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string out;
  if (::connect(s, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const auto n = ::send(s, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) break;
      sent += static_cast<std::size_t>(n);
    }
    std::array<char, 4096> piece;
    ssize_t n = 0;
    while ((n = ::recv(s, piece.data(), piece.size(), 0)) > 0) {
      out.append(piece.data(), static_cast<std::size_t>(n));
    }
  }
  ::close(s);
  return out;
}

Transport make(TransportOptions options, Handler handler) {
  options.port = 0;
  TransportHooks hooks;
  hooks.handler = std::move(handler);
  return Transport(options, std::move(hooks));
}

void answer(const ExchangePointer& exchange) {
  HttpResponse response;
  response.body = exchange->request().body;
  exchange->respond(std::move(response));
}

std::string chunked(const std::string& chunks) {
  return "POST /v1/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
         "Transfer-Encoding: chunked\r\n\r\n" +
         chunks;
}

TEST(TransportTest, ADroppedExchangeAnswers500) {
  const Transport transport = make({}, [](const ExchangePointer&) {});
  const std::string text =
      talk(transport.port(), "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(text.substr(0, 12), "HTTP/1.1 500");
  EXPECT_EQ(transport.counts().in_flight, 0U);
}

TEST(TransportTest, ExtensionsAndTrailersOfChunksAreLimited) {
  const Transport transport = make({}, answer);
  const std::string some(1000, 'e');
  std::string good = chunked("3;" + some + "\r\nabc\r\n0\r\nA: " + some + "\r\n\r\n");
  EXPECT_EQ(talk(transport.port(), good).substr(0, 12), "HTTP/1.1 200");
  const std::string more(std::size_t{1} << 20, 'e');
  for (const std::string& bad : {chunked("3;" + more + "\r\nabc\r\n0\r\n\r\n"),
                                 chunked("3\r\nabc\r\n0\r\nA: " + more + "\r\n\r\n")}) {
    const std::string text = talk(transport.port(), bad);
    EXPECT_EQ(text.substr(0, 12), "HTTP/1.1 400");
    EXPECT_NE(text.find("\"endpoint\":\"/v1/x\""), std::string::npos) << text;  // of its dialect
  }
}

TEST(TransportTest, ABodyLargerThanItsBufferIsRead) {
  const Transport transport = make({}, answer);
  const std::string body(std::size_t{3} << 20, 'b');
  const std::string text =
      talk(transport.port(), "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " +
                                 std::to_string(body.size()) + "\r\n\r\n" + body);
  EXPECT_TRUE(text.ends_with("\r\n\r\n" + body));
}

TEST(TransportTest, TooManyConnectionsAreToldInAWholeAnswer) {
  TransportOptions options;
  options.max_connections = 0;
  const Transport transport = make(options, answer);
  const std::string text = talk(transport.port(), "");
  const std::size_t body = text.find("\r\n\r\n") + 4;
  EXPECT_EQ(text.substr(0, 12), "HTTP/1.1 503");
  EXPECT_NE(text.find("Content-Length: " + std::to_string(text.size() - body) + "\r\n"),
            std::string::npos)
      << text;
}

/// Asks one request on each of its connections until the server ends; how many had no answer.
int lost_until_the_end(std::uint16_t port, std::atomic<int>& answered,
                       const std::atomic<bool>& ending) {
  int lost = 0;
  for (;;) {
    const int s = ::socket(AF_INET, SOCK_STREAM, 0);
    const timeval connecting = {0, 100'000};  // nobody listens any more
    const timeval reading = {20, 0};
    ::setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &connecting, sizeof connecting);
    ::setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &reading, sizeof reading);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(s, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
      ::close(s);
      if (ending) return lost;
      continue;  // a busy machine
    }
    const std::string text = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    (void)::send(s, text.data(), text.size(), MSG_NOSIGNAL);
    std::array<char, 4096> piece;
    const ssize_t n = ::recv(s, piece.data(), piece.size(), 0);
    if (n > 0) {
      ++answered;
    } else {
      ++lost;
    }
    ::close(s);
  }
}

TEST(TransportTest, WhoHasConnectedWhenItEndsIsAnswered) {
  for (int round = 0; round < 20; ++round) {
    Transport transport = make({}, answer);
    std::atomic<int> answered{0};
    std::atomic<int> lost{0};
    std::atomic<bool> ending{false};
    std::vector<std::thread> clients;
    for (int i = 0; i < 4; ++i) {
      clients.emplace_back([&] { lost += lost_until_the_end(transport.port(), answered, ending); });
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (answered < 50 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_GE(answered, 50);
    ending = true;
    EXPECT_TRUE(transport.drain(std::chrono::seconds(20)));
    transport.stop();
    for (std::thread& one : clients) one.join();
    EXPECT_EQ(lost, 0) << "round " << round;
  }
}

}  // namespace
}  // namespace toto::server
