/**
 * The login pages: sign in, choose a passkey or a password, and messages. The pages have the same layout as all other
 * Gatehouse pages.
 */
import { type Html, html, type HtmlPage, page } from '../../../net/index.ts'
import { passwordLength } from './passwords.ts'

export const scriptPath = '/login/passkey.js'
export const enrolPath = '/login/enrol'

export interface LoginPage {
  /** Address that clients connect to. */
  readonly address: string
  /** Path of the page. */
  readonly path: string
  readonly origin: string
  /** Shown after a failed attempt. */
  readonly problem?: string | undefined
  readonly name?: string | undefined
}

export function loginPage({ address, path, origin, problem, name = '' }: LoginPage): HtmlPage {
  const body = html`<h1>Sign in to Gatehouse</h1>
<p class="soft">You are signing in to the MCP servers at ${address}.</p>
${alert(problem)}
${passkeyBox({ kind: 'get', options: `${path}/options`, submit: `${path}/passkey`, label: 'Sign in with a passkey' })}
<form method="post" action="${path}">
<p class="field"><label for="name">Name</label>
<input id="name" name="name" value="${name}" autocomplete="username" autocapitalize="none" spellcheck="false" required></p>
<p class="field"><label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required></p>
<div class="buttons"><button class="main">Sign in</button></div>
</form>`
  return page('Sign in to Gatehouse', body, [origin], scriptPath)
}

export interface EnrolmentPage {
  readonly user: string
  readonly key: string
  readonly address: string
  readonly origin: string
  readonly problem?: string | undefined
}

export function enrolmentPage({ user, key, address, origin, problem }: EnrolmentPage): HtmlPage {
  const { min, max } = passwordLength
  const body = html`<h1>Set up your sign-in</h1>
<p>Choose how <bdi>${user}</bdi> signs in to the MCP servers at ${address}. This link works once.</p>
${alert(problem)}
${passkeyBox({ kind: 'create', key, options: `${enrolPath}/options`, submit: `${enrolPath}/passkey`, label: 'Create a passkey' })}
<form method="post" action="${enrolPath}">
<input type="hidden" name="key" value="${key}">
<input type="text" name="username" value="${user}" autocomplete="username" readonly hidden>
<p class="field"><label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="new-password" minlength="${String(min)}" maxlength="${String(max)}" aria-describedby="rule" required></p>
<p class="soft" id="rule">At least ${String(min)} characters.</p>
<p class="field"><label for="repeated">Repeat the password</label>
<input id="repeated" name="repeated" type="password" autocomplete="new-password" maxlength="${String(max)}" required></p>
<div class="buttons"><button class="main">Save the password</button></div>
</form>`
  return page('Set up your sign-in', body, [origin], scriptPath)
}

export function enrolledPage(address: string): HtmlPage {
  return page(
    'You can sign in now',
    html`<h1>You can sign in now</h1>
<p>Add this address to your MCP client as a server of type http. The client opens a sign-in page in
your browser.</p>
<dl><div><dt>Address</dt><dd>${address}</dd></div></dl>
<p class="soft">You can close this page.</p>`,
  )
}

/**
 * Continues the login at another address. A redirect would be blocked, because browsers apply the page's `form-action`
 * policy to redirects, and the addresses of MCP clients are unknown here.
 */
export function continuePage(location: string): HtmlPage {
  const { html: text, headers } = page(
    'You are signed in',
    html`<h1>You are signed in</h1><p><a href="${location}" rel="noreferrer">Continue</a></p>`,
  )
  return { html: text, headers: { ...headers, Refresh: `0; url=${location}` } }
}

export function messagePage(title: string, text: string): HtmlPage {
  return page(title, html`<h1>${title}</h1><p>${text}</p>`)
}

interface PasskeyBox {
  readonly kind: 'get' | 'create'
  readonly key?: string
  readonly options: string
  readonly submit: string
  readonly label: string
}

/** Hidden until the script finds that the browser supports passkeys. */
function passkeyBox({ kind, key = '', options, submit, label }: PasskeyBox): Html {
  return html`<div class="passkey" id="passkey" hidden data-kind="${kind}" data-key="${key}" data-options="${options}" data-submit="${submit}">
<div class="buttons"><button class="main" type="button">${label}</button></div>
<p class="warn" id="problem" role="alert" hidden></p>
<p class="or">or use a password</p>
</div>`
}

function alert(problem: string | undefined): Html | undefined {
  return problem === undefined ? undefined : html`<p class="warn" role="alert">${problem}</p>`
}
