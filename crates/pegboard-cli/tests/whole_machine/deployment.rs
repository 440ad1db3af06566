//! The command as a service: under systemd, behind a load balancer, with health checks, and as the files in `packaging` run it.

mod cluster;
mod guides;
mod health;
mod packaging;
mod replicas;
mod service;
