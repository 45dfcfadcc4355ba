# Template of the Homebrew formula: the release workflow fills in the version and the checksums (packaging/homebrew/fill.sh).
class Bolide < Formula
  desc "Document database for Azure Cosmos DB and MongoDB clients, with exact expiry"
  homepage "https://github.com/bolide-db/bolide"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "https://github.com/bolide-db/bolide/releases/download/v@VERSION@/bolide-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@aarch64-apple-darwin@"
    end
    on_intel do
      url "https://github.com/bolide-db/bolide/releases/download/v@VERSION@/bolide-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@x86_64-apple-darwin@"
    end
  end

  on_linux do
    on_arm do
      url "https://github.com/bolide-db/bolide/releases/download/v@VERSION@/bolide-@VERSION@-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@aarch64-unknown-linux-musl@"
    end
    on_intel do
      url "https://github.com/bolide-db/bolide/releases/download/v@VERSION@/bolide-@VERSION@-x86_64-unknown-linux-musl.tar.gz"
      sha256 "@x86_64-unknown-linux-musl@"
    end
  end

  def install
    bin.install "bolide"
    man1.install "man/bolide.1"
    bash_completion.install "completions/bolide.bash" => "bolide"
    zsh_completion.install "completions/_bolide"
    fish_completion.install "completions/bolide.fish"
    doc.install "README.md", "LICENSE-MIT", "LICENSE-APACHE"
  end

  service do
    run [opt_bin/"bolide", "--data-dir", var/"bolide"]
    keep_alive true
    log_path var/"log/bolide.log"
    error_log_path var/"log/bolide.log"
  end

  test do
    port = free_port
    pid = spawn bin/"bolide", "--memory", "--no-mongo", "--port", port.to_s
    begin
      ready = (1..50).any? do
        sleep 0.1
        quiet_system bin/"bolide", "health", "--port", port.to_s
      end
      assert ready, "the server is not ready after 5 seconds"
    ensure
      Process.kill "TERM", pid
      Process.wait pid
    end
  end
end
