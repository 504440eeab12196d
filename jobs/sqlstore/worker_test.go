package sqlstore_test

// runAsWorker runs this binary as a process that is to be killed.
func runAsWorker() (int, bool) { return 0, false }
