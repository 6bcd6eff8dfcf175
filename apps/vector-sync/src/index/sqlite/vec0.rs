//! What makes `vec0` known to SQLite.

use std::sync::Once;

/// Lets every connection that this process opens from now on have tables of sqlite-vec.
pub(super) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        type Init = unsafe extern "C" fn(
            *mut rusqlite::ffi::sqlite3,
            *mut *mut std::ffi::c_char,
            *const rusqlite::ffi::sqlite3_api_routines,
        ) -> std::ffi::c_int;
        // What C declares with these parameters, the crate declares without any.
        #[expect(
            unsafe_code,
            reason = "an extension is a C function, of this type; it is called when a connection is opened"
        )]
        unsafe {
            let init = std::mem::transmute::<*const (), Init>(sqlite_vec::sqlite3_vec_init as *const ());
            rusqlite::ffi::sqlite3_auto_extension(Some(init));
        }
    });
}
