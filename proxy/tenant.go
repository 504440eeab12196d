package proxy

// Tenant is whom a request counts against.
type Tenant struct {
	// ID is an HMAC of what named the tenant: what appears in Redis, logs and
	// metrics.
	ID string
	// Address is an HMAC of the client's address (an IPv6 client's /64).
	Address string
	// Name and Class are those of the keys file; empty for everybody else.
	Name, Class string
	// Factor multiplies the rates of a tenant; 1 where nothing says otherwise.
	Factor float64
	// Verified says that the name was checked. A claimed tenant also counts
	// against its address.
	Verified bool
}
