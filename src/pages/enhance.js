// Adds to a page where scripts run: copying, a form that is not sent twice, and work that is followed until it is done. Every page works without it.
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

async function follow() {
  const shown = document.querySelector('[data-under-way]');
  if (!shown) return;
  await new Promise((resolve) => setTimeout(resolve, 2000));
  const answer = document.hidden ? undefined : await fetch(location.href).catch(() => undefined);
  if (answer?.ok) {
    const read = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const now = read.querySelector('[data-under-way]');
    if (!now) return location.reload();
    shown.replaceWith(now);
  }
  follow();
}
follow();
