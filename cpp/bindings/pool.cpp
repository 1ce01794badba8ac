#include "pool.hpp"

#include <system_error>

#include "float_mode.hpp"

#if !defined(_WIN32)
#include <pthread.h>
#endif

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace poise {

namespace {

constexpr int kSpins = 4000;  // about 40 us: longer than the gap between two calls in a loop

void relax() {
#if defined(__x86_64__) || defined(_M_X64)
    _mm_pause();
#else
    std::this_thread::yield();
#endif
}

// counts the forks between the first process and this one
std::atomic<int> forks{0};

void watch_forks() {
#if !defined(_WIN32)
    static const int once = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
    (void)once;
#endif
}

}  // namespace

// A child process has the pool but not its workers.
bool Pool::orphaned() const { return generation_ != forks.load(std::memory_order_relaxed); }

Pool::Pool(int threads) : crew_(new Crew), generation_(forks) {
    watch_forks();
    // where the system gives no more threads, those that are there do the work
    try {
        crew_->workers.reserve(threads);
        for (int i = 1; i < threads; ++i) crew_->workers.emplace_back([this, i] { loop(i); });
    } catch (const std::system_error&) {
    }
    size_ = static_cast<int>(crew_->workers.size()) + 1;
}

Pool::~Pool() {
    if (orphaned()) return;
    {
        std::lock_guard<std::mutex> lock(crew_->mutex);
        stop_ = true;
        round_.fetch_add(1);
    }
    crew_->wake.notify_all();
    for (auto& t : crew_->workers) t.join();
    delete crew_;
}

void Pool::share(int thread) {
    const std::int64_t n = size();
    const std::int64_t begin = count_ * thread / n, end = count_ * (thread + 1) / n;
    if (begin < end) (*work_)(begin, end, thread);
}

void Pool::run(std::int64_t count, const Work& work) {
    if (size_ == 1 || count < 2 || orphaned()) {
        work(0, count, 0);
        return;
    }
    work_ = &work;
    count_ = count;
    open_ = size_ - 1;
    {
        std::lock_guard<std::mutex> lock(crew_->mutex);
        round_.fetch_add(1, std::memory_order_release);
    }
    crew_->wake.notify_all();
    share(0);
    for (int spin = 0; open_.load(std::memory_order_acquire) > 0; ++spin) {
        if (spin < kSpins) relax();
        else std::this_thread::yield();
    }
}

void Pool::loop(int thread) {
    const KernelFloatMode floats;
    std::uint64_t seen = 0;
    for (;;) {
        for (int spin = 0; spin < kSpins && round_.load(std::memory_order_acquire) == seen; ++spin)
            relax();
        if (round_.load(std::memory_order_acquire) == seen) {
            std::unique_lock<std::mutex> lock(crew_->mutex);
            crew_->wake.wait(lock, [&] { return round_.load(std::memory_order_acquire) != seen; });
        }
        seen = round_.load(std::memory_order_acquire);
        if (stop_) return;
        share(thread);
        open_.fetch_sub(1, std::memory_order_release);
    }
}

}  // namespace poise
