package claim

import "time"

// ReadHistory lists the claims of a history that held their lock at any time between from and to, in the order of
// their begin. A history that is not there is empty. A line that is torn or is none of ours is passed over.
func ReadHistory(path string, from, to time.Time) ([]Record, error) { return nil, nil }
