// Package s3 reads and writes objects in S3 buckets: of AWS, and of servers that speak its protocol
// (MinIO, Ceph, Garage). A path is s3://BUCKET/KEY; s3://BUCKET/KEY?versionId=ID reads one version.
// Endpoint, region, credentials and CA come from the environment and the files of the AWS tools.
//
// Invariants, each with a test named after it:
//
//   - Fetch copies one version of an object whole or fails: a broken connection is resumed with the
//     ETag and the version of the first answer; length and offered checksums are compared.
//   - Put never replaces an object, regardless of who wrote it and when: the server is asked before
//     the upload, and told to refuse in the request that completes it (If-None-Match). The error
//     wraps fs.ErrExist. An object with the same bytes counts as written: it may be that of an
//     earlier run, or of a request whose answer was lost.
//   - An object is visible only when all parts have arrived. After an error or an interruption the
//     upload is aborted. A killed process leaves parts, which a lifecycle rule removes.
//   - A server that takes and sends nothing, or whose answer has no end, ends the request.
//   - Errors hold no credential and no signature.
package s3
