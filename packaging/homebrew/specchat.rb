# A template: packaging/recipes.py fills in the marks. Not run on a Mac yet; its syntax is tested.
class Specchat < Formula
  include Language::Python::Virtualenv

  desc "Private terminal chat that guesses ahead without changing the answer"
  homepage "@HOMEPAGE@"
  url "@URL@"
  sha256 "@SHA256@"
  license "Apache-2.0"

  # llama-cpp-python compiles llama.cpp.
  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "libyaml"
  depends_on "numpy"
  depends_on "python@3.13"

  # @RESOURCES@

  def install
    # A bottle runs on other machines than the one that built it. Metal is on by itself where there is one.
    ENV["CMAKE_ARGS"] = "-DGGML_NATIVE=OFF" if build.bottle?
    virtualenv_install_with_resources
    generate_completions_from_executable(bin/"specchat", "completion")
    (man1/"specchat.1").write Utils.safe_popen_read(bin/"specchat", "manual")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/specchat --version")
    assert_match "qwen2.5-coder-1.5b", shell_output("#{bin}/specchat models list")
  end
end
