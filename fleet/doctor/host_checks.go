package doctor

// hostChecks are those about the host itself, in the order in which they are shown.
func hostChecks() []Check {
	return []Check{
		bus(), linger(), systemdVersion(), journal(),
		storePlace(), diskSpace(), writable(), staging(), openToOthers(),
		deviceAccess(), kernelParameter(), eviction(), gpuFault(),
		claimLock(), clock(),
	}
}
