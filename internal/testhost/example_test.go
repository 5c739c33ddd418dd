package testhost_test

import (
	"context"
	"fmt"

	"github.com/1bit-systems/pkg/internal/testhost"
)

func ExampleStart() {
	ctx := context.Background()
	host, err := testhost.Start(ctx, testhost.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer host.Stop()
	units, err := host.Run(ctx, host.User, "systemctl", "--user", "list-units")
	fmt.Println(units, err)
}
