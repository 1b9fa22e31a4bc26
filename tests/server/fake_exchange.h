// SPDX-License-Identifier: Apache-2.0
// An exchange without a socket: work is run by the test's thread while it waits for the answer.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "server/http.h"

namespace toto::server {

class FakeExchange final : public Exchange {
 public:
  explicit FakeExchange(HttpRequest request) : request_(std::move(request)) {}

  HttpRequest& request() override { return request_; }
  void respond(HttpResponse response) override {
    const std::scoped_lock lock(mutex_);
    ++answers_;
    if (!response_) response_ = std::move(response);  // as the real one
    changed_.notify_all();
  }
  void post(std::function<void()> work) override {
    const std::scoped_lock lock(mutex_);
    if (ended_) return;  // nobody runs it, and it holds this exchange
    work_.push_back(std::move(work));
    changed_.notify_all();
  }
  void on_gone(std::function<void()> gone) override { gone_ = std::move(gone); }
  void on_deadline(Clock::time_point, std::function<void()> late) override {
    late_ = std::move(late);
  }

  bool keep(std::size_t bytes) override { return bytes <= room; }
  std::size_t room = std::numeric_limits<std::size_t>::max();  // for bodies

  /// A body that is streamed, in pieces of that many bytes.
  void read(std::function<void(BodyPiece)> take) override {
    if (piece == 0) return Exchange::read(std::move(take));
    std::string bytes = request_.body.substr(0, piece);
    request_.body.erase(0, bytes.size());
    const bool last = request_.body.empty();
    post([take = std::move(take), bytes = std::move(bytes), last] { take({bytes, last, {}, {}}); });
  }
  std::size_t piece = 0;  // 0: all at once

  /// The deadline comes.
  void expire() {
    if (late_) std::exchange(late_, {})();
  }
  /// The client goes.
  void go() {
    if (gone_) std::exchange(gone_, {})();
  }
  /// Runs what is posted until the answer is there.
  HttpResponse wait() {
    run_until([this] { return response_.has_value(); });
    gone_ = nullptr;  // as a session, once it has answered: they hold this exchange
    late_ = nullptr;
    HttpResponse response = *response_;
    response_->source = nullptr;  // so does a stream
    if (!response.source) end();
    return response;
  }
  /// All of an answer that comes piece by piece.
  std::string whole(const HttpResponse& response) {
    std::string all;
    for (bool last = false; !last;) {
      bool taken = false;
      response.source->next([&](std::string part, bool end) {
        const std::scoped_lock lock(mutex_);
        all += part;
        last = end;
        taken = true;
        changed_.notify_all();
      });
      run_until([&taken] { return taken; });
    }
    end();
    return all;
  }
  int answers() {
    const std::scoped_lock lock(mutex_);
    return answers_;
  }

 private:
  /// What is posted, in order; returns when it is done and nothing is left.
  template <typename Done>
  void run_until(const Done& done) {
    for (;;) {
      std::function<void()> work;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return done() || !work_.empty(); });
        if (work_.empty()) return;
        work = std::move(work_.front());
        work_.pop_front();
      }
      work();
    }
  }

  /// All is answered: what a cancelled forecast still posts is dropped.
  void end() {
    std::deque<std::function<void()>> left;
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    left.swap(work_);
  }

  HttpRequest request_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::optional<HttpResponse> response_;
  std::function<void()> gone_, late_;
  int answers_ = 0;
  bool ended_ = false;
};

}  // namespace toto::server
