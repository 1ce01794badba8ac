// Scratch buffers of the algorithms: one set per thread, allocated once.
#pragma once

#include <cstddef>
#include <new>

#include "poise/aba.hpp"
#include "poise/crba.hpp"
#include "poise/drive.hpp"

namespace poise::inline POISE_ISA {

// Aligned memory for plain numbers, not initialised.
template <class T>
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(std::size_t count) { resize(count); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { release(); }
    void resize(std::size_t count) {
        release();
        data_ = static_cast<T*>(::operator new(count * sizeof(T) + 64, std::align_val_t(64)));
        size_ = count;
    }
    // at least so many, what is there stays; grows by doubling
    void reserve(std::size_t count) {
        if (count <= size_) return;
        Buffer more(count > 2 * size_ ? count : 2 * size_);
        for (std::size_t i = 0; i < size_; ++i) more.data_[i] = data_[i];
        swap(more);
    }
    void swap(Buffer& other) {
        T* const data = data_;
        const std::size_t size = size_;
        data_ = other.data_, size_ = other.size_;
        other.data_ = data, other.size_ = size;
    }
    T* data() { return data_; }
    const T* data() const { return data_; }
    std::size_t size() const { return size_; }
    T& operator[](std::size_t i) { return data_[i]; }
    const T& operator[](std::size_t i) const { return data_[i]; }

  private:
    void release() {
        if (data_) ::operator delete(data_, std::align_val_t(64));
        data_ = nullptr;
    }
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

template <class S>
struct Scratch {
    Buffer<Work<S>> work, target_work;
    Buffer<Carry<S>> carry;
    Buffer<S> Q, K;            // of the drive (nv)
    Buffer<S> Q_own, K_own;    // of the joints themselves: springs, dampers, rotor inertia
    Buffer<S> Q_sum, K_sum;    // both
    Buffer<Gain<S>> own_gain;  // stiffness and damping of the joints themselves
    Buffer<S> Q_free, K_free;  // of the drive before effort limits
    Buffer<S> tau;             // (nv) of the drive, within them
    Buffer<S> a_law, r_law;    // (nv) where the bounded drive was linearised, and its forces
    Buffer<S> a_free;          // (nv) without contact
    Buffer<S> contact_force, contact_law;  // (nv) of contact, now and there
    Buffer<Vec3<S>> relief;                // (nb) see JointForces
    Buffer<S> qdd, v_next, load;
    Buffer<S> drift;            // what free bodies move by beyond their velocities (nv)
    Buffer<S> q_old, v_old;     // to go back to where a lane is lost
    Buffer<S> tq, tv, ta;       // one row of the target
    Buffer<S> M, cg;            // the baselines' matrix and vectors
    Buffer<MaskOf<S>> limited;  // (nv)
    Buffer<Wrench<S>> external, total;
    Buffer<Inertia<S>> pinned;
    Buffer<Rigid<S>> composite;
    Buffer<Vec3<S>> origin, velocity, target_origin, target_velocity;
    Buffer<Quat<S>> rotation_step;

    explicit Scratch(const Forest& f)
        : work(f.nb), target_work(f.nb), carry(f.slots), Q(f.nv), K(f.nv), Q_own(f.nv), K_own(f.nv),
          Q_sum(f.nv), K_sum(f.nv), own_gain(f.nv), Q_free(f.nv), K_free(f.nv), tau(f.nv),
          a_law(f.nv), r_law(f.nv), a_free(f.nv), contact_force(f.nv), contact_law(f.nv),
          relief(f.nb), qdd(f.nv), v_next(f.nv), load(f.nv), drift(f.nv), q_old(f.nq), v_old(f.nv),
          tq(f.nq), tv(f.nv), ta(f.nv), limited(f.nv), external(f.nb), total(f.nb), pinned(f.nb),
          composite(f.nb), origin(f.nb), velocity(f.nb), target_origin(f.nb), target_velocity(f.nb),
          rotation_step(f.nb) {}
    // the matrix is made when a method first asks for it
    void need_matrix(const Forest& f) {
        if (M.size()) return;
        M.resize(static_cast<std::size_t>(f.nv) * f.nv);
        cg.resize(4 * static_cast<std::size_t>(f.nv));
    }
};

}  // namespace poise::inline POISE_ISA
