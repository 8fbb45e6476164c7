package encoding

// Weigh estimates the memory of JSON content in bytes: 16 for each value, 48 more for a map or
// list, and the bytes of keys and strings.
func Weigh(value any) int {
	const one, container = 16, 48
	weight := one
	switch value := value.(type) {
	case string:
		weight += len(value)
	case map[string]any:
		weight += container
		for key, element := range value {
			weight += one + len(key) + Weigh(element)
		}
	case []any:
		weight += container
		for _, element := range value {
			weight += Weigh(element)
		}
	}
	return weight
}
