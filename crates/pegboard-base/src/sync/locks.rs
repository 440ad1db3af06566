//! A mutex and a read-write lock that do not poison.
//!
//! A panic under a lock is a bug that its task reports. What the lock protects is changed in single steps, so others can go on with it; an error at
//! every later `lock()` would spread one bug to all calls of a server.

use std::sync::PoisonError;

#[cfg(not(feature = "explore"))]
use std::sync as imp;

#[cfg(feature = "explore")]
use shuttle::sync as imp;

pub use imp::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

/// A mutex whose `lock` cannot fail. After a panic of its holder, it is simply free.
#[derive(Debug, Default)]
pub struct Mutex<T: ?Sized>(imp::Mutex<T>);

impl<T> Mutex<T> {
    /// A mutex around `value`.
    pub const fn new(value: T) -> Self {
        Self(imp::Mutex::new(value))
    }

    /// The value, when nobody else can hold the mutex any more.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the mutex.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value of a mutex that nobody else refers to.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A read-write lock whose `read` and `write` cannot fail. After a panic of its holder, it is simply free.
#[derive(Debug, Default)]
pub struct RwLock<T: ?Sized>(imp::RwLock<T>);

impl<T> RwLock<T> {
    /// A lock around `value`.
    pub const fn new(value: T) -> Self {
        Self(imp::RwLock::new(value))
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until nobody writes.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody reads or writes.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(feature = "explore")))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::{Mutex, RwLock};

    #[test]
    fn a_lock_is_free_after_a_panic_of_its_holder() {
        let mutex = Mutex::new(1);
        let lock = RwLock::new(1);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _held = mutex.lock();
            let _written = lock.write();
            panic!("a bug under the locks");
        }));
        assert!(panicked.is_err());

        *mutex.lock() += 1;
        *lock.write() += 1;

        assert_eq!((*mutex.lock(), *lock.read()), (2, 2));
        assert_eq!(mutex.into_inner(), 2);
    }
}
