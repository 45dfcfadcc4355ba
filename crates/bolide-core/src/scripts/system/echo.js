function (value) {
  getContext().getResponse().setBody(value);
}
