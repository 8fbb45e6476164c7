// Package verify checks a whole move of logical clusters by the files that it left.
package verify
