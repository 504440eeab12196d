package config

// suggest gives the one of names that word is most likely a slip of, or "".
func suggest(word string, names []string) string {
	best, nearest := len(word)/3+1, ""
	for _, name := range names {
		if d := distance(word, name); d < best {
			best, nearest = d, name
		}
	}
	return nearest
}

// distance counts the bytes to insert, delete, replace or swap with their
// neighbour to make b of a (optimal string alignment).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
