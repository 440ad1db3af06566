//! `pegboard import`, `install`, `uninstall` and `init`, with the config files of every host in their real shapes.

#[cfg(target_os = "linux")]
mod consent;
mod golden;
mod import;
mod init;
mod install;
mod left_out;
mod ownership;
mod restoring;
mod same_server;
#[cfg(target_os = "linux")]
mod terminal;
mod without_config;
