package systemd

// What systemd and journald say of a unit, by MESSAGE_ID. The ids are a promise of systemd's (sd-messages.h); the
// fields are those that an entry has beside it.
const (
	IDUnitStarting     = "7d4958e842da4a758f6c1cdc7b36dcc5" // a start job begins; JOB_TYPE is start or restart
	IDUnitStarted      = "39f53479d3a045ac8e11786248231fbf" // a start job is done; JOB_RESULT
	IDUnitStartFailed  = "be02cf6855d2428ba40df7e9d022f03d" // a start job failed; JOB_RESULT: failed, timeout, …
	IDUnitStopping     = "de5b426a63be47a7b6ac3eaac82e2f6f" // a stop job begins: someone asked for it
	IDUnitStopped      = "9d1aaa27d60140bd96365438aad20286" // a stop job is done
	IDProcessExited    = "98e322203f7a4ed290d09fe03c09fe15" // EXIT_CODE (exited, killed, dumped), EXIT_STATUS, COMMAND
	IDUnitSucceeded    = "7ad2d189f7e94e70a38c781354912448" // the unit ended well
	IDFailureResult    = "d9b373ed55a64feb8242e02dbe79a49c" // the unit ended badly; UNIT_RESULT
	IDRestartScheduled = "5eb03494b6584870a536b337290809b3" // N_RESTARTS
	IDResources        = "ae8f7b866b0347b9af31fe1c80b127c0" // after the end; CPU_USAGE_NSEC, and, by newer ones, MEMORY_PEAK
	IDOOM              = "fe6faa94e7774663a0da52717891d8ef" // the kernel's OOM killer killed a process of the unit
	IDOOMD             = "d989611b15e44c9dbf31e3c81256e4ed" // systemd-oomd did
	IDSpawnFailed      = "641257651c1b4ec9a8624d7a40a9e1e7" // the program could not be executed; EXECUTABLE, ERRNO
	IDCoredump         = "fc2e22bc6ee647b6b90729ab34a250b1" // COREDUMP_SIGNAL_NAME, COREDUMP_PID, …; the message has the backtrace
	IDSuppressed       = "a596d6fe7bfa4994828e72309e95d61e" // journald dropped messages for their rate; N_DROPPED
	IDKernelMissed     = "e9bf28e6e834481bb6f48f548ad13606" // journald was too slow for the kernel's log
)
