class Etcdshift < Formula
  desc "Read, change and prove etcd snapshots of Kubernetes clusters"
  homepage "{{.Home}}"
  version "{{.Number}}"
  license "Apache-2.0"
{{range .Archives}}{{if ne .OS "windows"}}
  on_{{if eq .OS "darwin"}}macos{{else}}{{.OS}}{{end}} do
    on_{{if eq .Arch "amd64"}}intel{{else}}arm{{end}} do
      url "{{.URL}}"
      sha256 "{{.Sum}}"
    end
  end
{{end}}{{end}}
  def install
    bin.install "etcdshift"
    man1.install "man/etcdshift.1"
    bash_completion.install "completion/etcdshift.bash" => "etcdshift"
    zsh_completion.install "completion/_etcdshift"
    fish_completion.install "completion/etcdshift.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/etcdshift version")
  end
end
