// Threads that share out blocks of lanes: they spin briefly for the next piece, then sleep.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace poise {

class Pool {
  public:
    using Work = std::function<void(std::int64_t begin, std::int64_t end, int thread)>;

    explicit Pool(int threads);
    ~Pool();
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    int size() const { return static_cast<int>(workers_.size()) + 1; }
    // work(begin, end, thread) over contiguous shares of 0 .. count - 1; returns when all is done
    void run(std::int64_t count, const Work& work);

  private:
    void loop(int thread);
    void share(int thread);
    bool orphaned() const;

    std::vector<std::thread> workers_;
    const Work* work_ = nullptr;
    std::int64_t count_ = 0;
    std::atomic<std::uint64_t> round_{0};
    std::atomic<int> open_{0};
    std::atomic<bool> stop_{false};
    int generation_;  // of the process that started the workers
    std::mutex mutex_;
    std::condition_variable wake_;
};

}  // namespace poise
