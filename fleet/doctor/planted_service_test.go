package doctor_test

// servicePlants are the problems of services and packages.
func servicePlants() []plant {
	return []plant{}
}
