// A slider shows its value while it is moved. Everything else works without a script.
for (const slider of document.querySelectorAll("input[type=range]")) {
  slider.addEventListener("input", () => {
    slider.closest("label").querySelector("output").textContent = slider.value;
  });
}
