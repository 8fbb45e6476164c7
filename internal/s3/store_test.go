package s3

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	for path, want := range map[string]Location{
		"s3://bkt/k":                  {"bkt", "k", ""},
		"s3://bkt/a/b c?d.db":         {"bkt", "a/b c?d.db", ""},
		"s3://bkt/k?versionId=3%2F4":  {"bkt", "k", "3/4"},
		"s3://bkt/k?x?versionId=null": {"bkt", "k?x", "null"},
		"s3://my.bucket-1/ä/%41.json": {"my.bucket-1", "ä/%41.json", ""},
	} {
		require.True(t, Is(path))
		got, err := Parse(path)
		require.NoError(t, err)
		require.Equal(t, want, got)
		again, err := Parse(got.String())
		require.NoError(t, err)
		require.Equal(t, want, again)
	}
	for path, want := range map[string]string{
		"s3://":                   "the bucket is missing",
		"s3:///k":                 "the bucket is missing",
		"s3://bkt":                "the key is missing",
		"s3://bkt/":               "the key is missing",
		"s3://bkt/dir/":           "ends in a slash",
		"s3://bkt/k?versionId=":   "the version is empty",
		"s3://bkt/k?versionId=%z": "invalid URL escape",
		"s3://id:hidden@b/k":      "s3://b/k: no credentials belong in a path",
		"file":                    "begins with s3://",
	} {
		_, err := Parse(path)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hidden")
	}
	require.True(t, Same("s3://bkt/k", "s3://bkt/k?versionId=1"))
	require.False(t, Same("s3://bkt/k", "s3://bkt/l"))
	require.False(t, Same("k", "k"))
}

// The settings come from the environment, then from the profile.
func TestSettings(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(config, []byte(`
# of the office
[default]
region = eu-west-1
endpoint_url = https://default.example

[profile backup]
region=eu-central-1
ca_bundle = /etc/ca.pem
services = minio
s3 =
  max_concurrent_requests = 20
[services minio]
s3 =
  endpoint_url = https://minio.example:9000
ec2 =
  endpoint_url = https://ec2.example
`), 0o600))
	for name, tc := range map[string]struct {
		set                  map[string]string
		endpoint, region, ca string
	}{
		"none":            {nil, "", "", ""},
		"default profile": {map[string]string{"AWS_CONFIG_FILE": config}, "https://default.example", "eu-west-1", ""},
		"profile": {map[string]string{"AWS_CONFIG_FILE": config, "AWS_PROFILE": "backup"},
			"https://minio.example:9000", "eu-central-1", "/etc/ca.pem"},
		"environment": {map[string]string{"AWS_CONFIG_FILE": config, "AWS_PROFILE": "backup",
			"AWS_ENDPOINT_URL":   "http://localhost:1",
			"AWS_DEFAULT_REGION": "x", "AWS_CA_BUNDLE": "y"}, "http://localhost:1", "x", "y"},
		"s3 before all": {map[string]string{"AWS_ENDPOINT_URL": "http://localhost:1",
			"AWS_ENDPOINT_URL_S3": "http://localhost:2/", "AWS_REGION": "a",
			"AWS_DEFAULT_REGION": "b"}, "http://localhost:2/", "a", ""},
		"ignored": {map[string]string{"AWS_CONFIG_FILE": config,
			"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}, "", "eu-west-1", ""},
		"region by default": {map[string]string{"AWS_ENDPOINT_URL": "http://localhost:1"}, "http://localhost:1",
			"us-east-1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, tc.set)
			s, err := readSettings()
			require.NoError(t, err)
			endpoint := ""
			if s.endpoint != nil {
				endpoint = s.endpoint.String()
			}
			require.Equal(t, []string{tc.endpoint, tc.region, tc.ca}, []string{endpoint, s.region, s.ca})
		})
	}
}

// Without a home folder, files of the working directory are not read instead.
func TestNoHome(t *testing.T) {
	environment(t, nil)
	t.Setenv("HOME", "")
	t.Setenv("USERPROFILE", "")
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir(".aws", 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(".aws", "config"),
		[]byte("[default]\nendpoint_url = https://evil.example\n"), 0o600))
	s, err := readSettings()
	require.NoError(t, err)
	require.Nil(t, s.endpoint)
}

// Errors about the environment contain no password.
func TestBadSettings(t *testing.T) {
	for name, set := range map[string]map[string]string{
		"no scheme":             {"AWS_ENDPOINT_URL": "minio.example:9000"},
		"no scheme, an address": {"AWS_ENDPOINT_URL": "10.0.0.1:9000"},
		"password":              {"AWS_ENDPOINT_URL": "https://me:hidden@minio.example"},
		"unparseable":           {"AWS_ENDPOINT_URL": "https://me:hidden%zz@minio.example"},
		"path":                  {"AWS_ENDPOINT_URL": "https://minio.example/s3"},
		"no CA":                 {"AWS_CA_BUNDLE": "/does/not/exist"},
		"empty CA":              {"AWS_CA_BUNDLE": "/dev/null"},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, set)
			_, err := Open()
			require.Error(t, err)
			if name == "no scheme" || name == "no scheme, an address" {
				require.ErrorContains(t, err, "must be https://HOST")
			}
			require.NotContains(t, err.Error(), "hidden")
		})
	}
}

// Credentials come from the environment, a profile, a process or a web identity; without
// credentials, an immediate error names the variables to set.
func TestCredentials(t *testing.T) {
	credentials := filepath.Join(t.TempDir(), "credentials")
	require.NoError(t, os.WriteFile(credentials,
		[]byte("[default]\naws_access_key_id=of-file\naws_secret_access_key=s\n"+
			"[empty]\n[backup]\naws_access_key_id=of-backup\naws_secret_access_key=s\n[half]\naws_access_key_id=x\n"),
		0o600))
	for name, tc := range map[string]struct {
		set  map[string]string
		want string // "": none
	}{
		"environment": {map[string]string{"AWS_ACCESS_KEY_ID": "of-env", "AWS_SECRET_ACCESS_KEY": "s",
			"AWS_SHARED_CREDENTIALS_FILE": credentials}, "of-env"},
		"file": {map[string]string{"AWS_SHARED_CREDENTIALS_FILE": credentials}, "of-file"},
		"profile": {map[string]string{"AWS_SHARED_CREDENTIALS_FILE": credentials, "AWS_PROFILE": "backup"},
			"of-backup"},
		"config file":     {map[string]string{"AWS_CONFIG_FILE": credentials}, "of-file"},
		"none":            {nil, ""},
		"empty profile":   {map[string]string{"AWS_SHARED_CREDENTIALS_FILE": credentials, "AWS_PROFILE": "empty"}, ""},
		"half":            {map[string]string{"AWS_SHARED_CREDENTIALS_FILE": credentials, "AWS_PROFILE": "half"}, ""},
		"unknown profile": {map[string]string{"AWS_SHARED_CREDENTIALS_FILE": credentials, "AWS_PROFILE": "other"}, ""},
		"one variable":    {map[string]string{"AWS_ACCESS_KEY_ID": "of-env"}, ""},
		"line break":      {map[string]string{"AWS_ACCESS_KEY_ID": "of-env", "AWS_SECRET_ACCESS_KEY": "hidden\n"}, ""},
		"no web token": {map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": "/does/not/exist", "AWS_ROLE_ARN": "r"},
			""},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{objects: map[string]*stored{"/bkt/k": {content: some}}}
			server := httptest.NewServer(f)
			defer server.Close()
			environment(t, tc.set)
			t.Setenv("AWS_ENDPOINT_URL", server.URL)
			s, err := Open()
			require.NoError(t, err)
			err = s.Fetch(t.Context(), "s3://bkt/k", file(t, nil), 16<<20)
			if tc.want == "" {
				require.ErrorContains(t, err, "s3://bkt/k: no credentials for S3 were found")
				require.NotContains(t, err.Error(), "hidden")
				require.Equal(t, name == "one variable", strings.HasSuffix(err.Error(),
					": AWS_ACCESS_KEY_ID is set, AWS_SECRET_ACCESS_KEY is not"))
				require.Equal(t, name == "line break", strings.HasSuffix(err.Error(),
					"the secret access key begins or ends with a space or a line break"))
				require.Empty(t, f.log)
				return
			}
			require.NoError(t, err)
			require.Contains(t, f.headers[0].Get("Authorization"), "Credential="+tc.want+"/")
		})
	}
}

// AWS_CA_BUNDLE replaces the system CAs.
func TestCABundle(t *testing.T) {
	f := &fake{objects: map[string]*stored{"/bkt/k": {content: some}}}
	server := httptest.NewUnstartedServer(f)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: server.Certificate().Raw}), 0o600))
	for _, bundle := range []string{ca, ""} {
		environment(t, map[string]string{"AWS_ENDPOINT_URL": server.URL, "AWS_ACCESS_KEY_ID": "id",
			"AWS_SECRET_ACCESS_KEY": "s", "AWS_CA_BUNDLE": bundle})
		s, err := Open()
		require.NoError(t, err)
		err = s.Fetch(t.Context(), "s3://bkt/k", file(t, nil), 16<<20)
		if bundle == ca {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "certificate")
		}
	}
}

func TestList(t *testing.T) {
	f := &fake{objects: map[string]*stored{}}
	for _, key := range []string{"a/1.db", "a/2.db", "a/3.db", "a/4.db", "a/5.db", "b/1.db"} {
		f.objects["/bkt/"+key] = &stored{content: some[:3]}
	}
	s := f.serve(t)
	var paths []string
	for o, err := range s.List(t.Context(), "s3://bkt/a/") {
		require.NoError(t, err)
		require.EqualValues(t, 3, o.Size)
		require.Equal(t, "e", o.ETag)
		require.Equal(t, 2026, o.Modified.Year())
		paths = append(paths, strings.TrimPrefix(o.Path, "s3://bkt/"))
	}
	require.Equal(t, []string{"a/1.db", "a/2.db", "a/3.db", "a/4.db", "a/5.db"}, paths)
	for range s.List(t.Context(), "s3://bkt/a/") {
		break
	}
}

// An endless or interrupted list is an error.
func TestListHostile(t *testing.T) {
	page := `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>` +
		`<Contents><Key>k</Key><LastModified>2026-11-20T20:50:00Z</LastModified></Contents></ListBucketResult>`
	for name, tc := range map[string]struct{ body, want string }{
		"repeats":  {page, "not in order"},
		"no token": {strings.Replace(page, "<NextContinuationToken>t</NextContinuationToken>", "", 1), "Truncated"},
		"no XML":   {"[]", "the server does not answer as S3 does"},
		"a page":   {"<!DOCTYPE html><p><br></p>", "the server does not answer as S3 does"},
		"XHTML":    {"<html><body><p>log in</p></body></html>", "the server does not answer as S3 does"},
		"breaks":   {page[:len(page)-30], "the server does not answer as S3 does"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{hook: func(w http.ResponseWriter,
				r *http.Request) bool {
				_, _ = w.Write([]byte(tc.body))
				return true
			}}
			var last error
			n := 0
			for _, err := range f.serve(t).List(t.Context(), "s3://bkt") {
				last = err
				n++
			}
			require.ErrorContains(t, last, tc.want)
			require.Less(t, n, 4)
		})
	}
	for _, err := range (&Store{}).List(t.Context(), "b") {
		require.ErrorContains(t, err, "begins with s3://")
	}
}
