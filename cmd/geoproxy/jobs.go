package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/geoproxy/geoproxy/config"
	"github.com/geoproxy/geoproxy/jobs/sqlstore"
)

// openTime bounds the opening of the store of jobs, its migrations included.
const openTime = time.Minute

// openJobs opens the store of jobs and gives the key that seals them.
func openJobs(ctx context.Context, file *config.File) (*sqlstore.Store, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	key, err := keptSecret(file.DataDir, "jobs.key", file.Jobs.Key)
	if err != nil {
		return nil, nil, err
	}
	var store *sqlstore.Store
	if file.Jobs.Store != "" {
		store, err = sqlstore.OpenPostgres(ctx, file.Jobs.Store)
	} else {
		store, err = sqlstore.OpenSQLite(ctx, filepath.Join(file.DataDir, "jobs"))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("jobs: %w", err)
	}
	return store, key, nil
}
