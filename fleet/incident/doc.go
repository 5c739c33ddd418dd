// Package incident writes down how a service ended: what its log, systemd, the kernel and the host say of it, what
// each slot was doing, which package it ran from and what else used the GPU.
package incident
