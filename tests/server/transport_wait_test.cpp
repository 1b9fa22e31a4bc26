// SPDX-License-Identifier: Apache-2.0
// Waits of a connection that end for nothing: one thread of the transport is told by the system of
// bytes, and another has read them by the time the first one goes on. Calls of the system go
// through this file (--wrap, see CMakeLists.txt), which holds the first thread in between.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "server/transport.h"

// NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker gives
extern "C" {
int __real_epoll_wait(int epoll, epoll_event* events, int most, int timeout);
int __real_epoll_ctl(int epoll, int what, int file, epoll_event* event);
ssize_t __real_recv(int socket, void* to, std::size_t size, int flags);
int __wrap_epoll_wait(int epoll, epoll_event* events, int most, int timeout);
int __wrap_epoll_ctl(int epoll, int what, int file, epoll_event* event);
ssize_t __wrap_recv(int socket, void* to, std::size_t size, int flags);
}

namespace toto::server {
namespace {

constexpr std::chrono::seconds kPatience{60};  // of what comes at once on an idle machine

/// Holds the thread that is told of bytes of a connection.
class Holder {
 public:
  void arm() {
    const std::scoped_lock lock(mutex_);
    armed_ = true;
    told_ = released_ = false;
    waits_ = empty_peeks_ = 0;
  }
  void release() {
    const std::scoped_lock lock(mutex_);
    armed_ = false;
    released_ = true;
    changed_.notify_all();
  }
  bool wait_until_told() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [this] { return told_; });
  }
  /// Until the connection has begun so many waits since arm().
  bool wait_for_waits(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return waits_ >= count; });
  }
  /// Until the connection has looked for bytes and there were none.
  bool wait_for_empty_peek() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [this] { return empty_peeks_ > 0; });
  }

  void after_epoll_wait(const epoll_event* events, int count) {
    std::unique_lock lock(mutex_);
    bool mine = false;
    for (int i = 0; i < count; ++i) {
      void* const one = events[i].data.ptr;  // a copy: the structure is packed
      mine = mine || ((events[i].events & EPOLLIN) != 0U && connections_.contains(one));
    }
    if (!armed_ || !mine) return;
    armed_ = false;
    told_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, kPatience, [this] { return released_; });
  }
  void before_epoll_ctl(int what, int file, const epoll_event* event) {
    sockaddr_storage peer = {};
    socklen_t size = sizeof peer;
    const std::scoped_lock lock(mutex_);
    void* const one = event != nullptr ? event->data.ptr : nullptr;
    if (what == EPOLL_CTL_ADD) {
      const bool connected = ::getpeername(file, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
      connected ? (void)connections_.insert(one) : (void)connections_.erase(one);
    } else if (what == EPOLL_CTL_MOD && connections_.contains(one)) {
      ++waits_;
      changed_.notify_all();
    }
  }
  void after_empty_peek() {
    const std::scoped_lock lock(mutex_);
    ++empty_peeks_;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<void*> connections_;  // as the system is told of them
  bool armed_ = false, told_ = false, released_ = false;
  int waits_ = 0, empty_peeks_ = 0;
};

Holder& holder() {
  static Holder one;
  return one;
}

/// A client, and a transport whose other thread is held from the body of its first request on.
class TransportWaitTest : public testing::Test {
 protected:
  void begin(Handler handler) {
    TransportOptions options;
    options.port = 0;
    options.header_seconds = 0.5;
    TransportHooks hooks;
    hooks.handler = std::move(handler);
    hooks.streams = [this](const HttpRequest&) {  // between the header and the body
      if (!held_) {
        held_ = true;
        holder().arm();
        send("body");
        EXPECT_TRUE(holder().wait_until_told());
      }
      return false;
    };
    transport_.emplace(options, std::move(hooks));
    client_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(transport_->port());
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(client_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    send(header());
  }
  void TearDown() override {
    holder().release();
    close_client();
    transport_.reset();
  }
  static std::string header() { return "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n"; }
  void send(const std::string& text) const {
    EXPECT_EQ(::send(client_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  /// What comes; empty where nothing does.
  [[nodiscard]] std::string receive(std::chrono::milliseconds patience) const {
    const timeval time = {patience.count() / 1000, (patience.count() % 1000) * 1000};
    ::setsockopt(client_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    std::array<char, 4096> piece;
    const ssize_t n = ::recv(client_, piece.data(), piece.size(), 0);
    return {piece.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
  }
  void close_client() {
    if (client_ >= 0) ::close(client_);
    client_ = -1;
  }

 private:
  int client_ = -1;
  bool held_ = false;
  std::optional<Transport> transport_;
};

TEST_F(TransportWaitTest, AClientThatGoesIsNoticedAllTheSame) {
  std::mutex mutex;
  std::condition_variable changed;
  ExchangePointer kept;
  bool gone = false;
  begin([&](const ExchangePointer& exchange) {
    exchange->on_gone([&] {
      const std::scoped_lock lock(mutex);
      gone = true;
      changed.notify_all();
    });
    const std::scoped_lock lock(mutex);
    kept = exchange;
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  ASSERT_TRUE(changed.wait_for(lock, kPatience, [&] { return kept != nullptr; }));
  holder().release();
  lock.unlock();
  ASSERT_TRUE(holder().wait_for_empty_peek());
  close_client();
  lock.lock();
  EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(10), [&] { return gone; }));
  lock.unlock();
  kept->respond({});
  kept.reset();
}

TEST_F(TransportWaitTest, AnIdleConnectionIsNotTakenForASlowHeader) {
  begin([](const ExchangePointer& exchange) { exchange->respond({}); });
  EXPECT_EQ(receive(kPatience).substr(0, 12), "HTTP/1.1 200");
  ASSERT_TRUE(holder().wait_for_waits(2));  // for the client to go, and for its next request
  holder().release();
  EXPECT_EQ(receive(std::chrono::milliseconds(2000)), "");  // longer than a header may take
  send(header() + "more");
  EXPECT_EQ(receive(kPatience).substr(0, 12), "HTTP/1.1 200");
}

}  // namespace
}  // namespace toto::server

int __wrap_epoll_wait(int epoll, epoll_event* events, int most, int timeout) {
  const int count = __real_epoll_wait(epoll, events, most, timeout);
  if (count > 0) toto::server::holder().after_epoll_wait(events, count);
  return count;
}

int __wrap_epoll_ctl(int epoll, int what, int file, epoll_event* event) {
  // Before: the other thread may be told at once.
  toto::server::holder().before_epoll_ctl(what, file, event);
  return __real_epoll_ctl(epoll, what, file, event);
}

ssize_t __wrap_recv(int socket, void* to, std::size_t size, int flags) {
  const ssize_t n = __real_recv(socket, to, size, flags);
  if (n < 0 && errno == EAGAIN && (flags & MSG_PEEK) != 0) {
    toto::server::holder().after_empty_peek();
    errno = EAGAIN;
  }
  return n;
}
// NOLINTEND(bugprone-reserved-identifier)
