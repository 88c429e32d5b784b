/** The script of the login pages, which runs in browsers. Without the script, users can sign in with a password. */
export const passkeyScript = `
const box = document.getElementById('passkey')
const problem = document.getElementById('problem')
const method = box.dataset.kind === 'create' ? 'parseCreationOptionsFromJSON' : 'parseRequestOptionsFromJSON'
if (window.isSecureContext && typeof window.PublicKeyCredential?.[method] === 'function') box.hidden = false

async function post(path, content) {
  const response = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ key: box.dataset.key, ...content }),
  })
  const answer = await response.json()
  if (!response.ok) throw new Error(answer.problem)
  return answer
}

async function usePasskey() {
  problem.hidden = true
  try {
    const options = await post(box.dataset.options)
    const publicKey = PublicKeyCredential[method](options)
    const credential =
      box.dataset.kind === 'create'
        ? await navigator.credentials.create({ publicKey })
        : await navigator.credentials.get({ publicKey })
    const { location } = await post(box.dataset.submit, { response: credential.toJSON() })
    window.location.assign(location)
  } catch (error) {
    problem.textContent =
      error.name === 'NotAllowedError' ? 'The passkey request was canceled.' : error.message || 'The passkey did not work.'
    problem.hidden = false
  }
}

box.querySelector('button').addEventListener('click', usePasskey)
`
