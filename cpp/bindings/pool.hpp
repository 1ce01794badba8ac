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

    int size() const { return size_; }
    // work(begin, end, thread) over contiguous shares of 0 .. count - 1; returns when all is done
    void run(std::int64_t count, const Work& work);

  private:
    void loop(int thread);
    void share(int thread);
    bool orphaned() const;

    // On the heap, because a child process has to leave it behind: its workers are gone, and what
    // they slept on cannot be destroyed without them.
    struct Crew {
        std::vector<std::thread> workers;
        std::mutex mutex;
        std::condition_variable wake;
    };
    Crew* crew_;
    int size_ = 1;
    int generation_;  // of the process that started the workers
    const Work* work_ = nullptr;
    std::int64_t count_ = 0;
    std::atomic<std::uint64_t> round_{0};
    std::atomic<int> open_{0};
    std::atomic<bool> stop_{false};
};

}  // namespace poise
