// What a page gains where scripts run: copying, and a form that is not sent twice. Every page works without it.
for (const button of document.querySelectorAll('[data-copy]')) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(button.dataset.copy);
    const before = button.textContent;
    button.textContent = button.dataset.copied;
    setTimeout(() => {
      button.textContent = before;
    }, 2000);
  });
}
for (const select of document.querySelectorAll('select[data-sends]')) {
  select.addEventListener('change', () => select.form.requestSubmit());
}
for (const form of document.querySelectorAll('form[method="post"]')) {
  form.addEventListener('submit', (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = 'yes';
  });
}
// A page that comes back from the browser's cache may be sent again.
addEventListener('pageshow', () => {
  for (const form of document.querySelectorAll('form[data-sent]')) delete form.dataset.sent;
});
