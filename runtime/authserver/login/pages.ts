/**
 * The pages of a login: consent, a provider that could not be connected, and errors.
 *
 * What a client says about itself is shown as its own claim; what this server knows (where the response goes, who serves
 * the description) is shown as fact, because that is what a user can check.
 * Source: MCP 2025-11-25 security best practices (consent page), client-id metadata documents section 6.
 */
import { type Html, html, type HtmlPage, page } from '../../net/index.ts'
import { isUnownedRedirect, redirectHost } from '../clients/redirect-uri.ts'
import { type AuthServerContext, isRequired } from './context.ts'
import type { AuthRequest, Confirmation, User } from '../model/records.ts'

export interface FormParts {
  readonly handle: string
  /** The field that ties the form to this browser. */
  readonly form: string
  readonly action: string
}

const scopeTexts: ReadonlyMap<string, string> = new Map([
  ['openid', 'Know which account you use'],
  ['profile', 'See your name'],
  ['email', 'See your e-mail address'],
  ['offline_access', 'Stay signed in when you are away'],
])

export function consentPage(
  request: AuthRequest,
  context: AuthServerContext,
  parts: FormParts & { readonly user?: User },
): HtmlPage {
  const name = request.clientName ?? 'A client without a name'
  const body = html`<h1><bdi>${name}</bdi> wants to act for you</h1>
${signedInAs(parts.user)}
<dl>
${facts(request)}
<div><dt>Wants access to</dt><dd><ul>${request.resources.map((one) => html`<li>${one}</li>`)}</ul></dd></div>
<div><dt>Wants to</dt><dd><ul>${request.scopes.map((scope) => html`<li>${scopeTexts.get(scope) ?? scope}</li>`)}</ul></dd></div>
</dl>
${warning(request)}
<form method="post" action="${parts.action}">
${hidden(parts)}
${providers(context, parts.user !== undefined)}
<div class="buttons">
<button class="main" name="action" value="approve">Allow and continue</button>
<button name="action" value="deny">Cancel</button>
</div>
</form>`
  return page(`Allow ${name}?`, body, targets(request, context))
}

function signedInAs(user: User | undefined): Html | undefined {
  if (user === undefined) return undefined
  const who = user.email ?? user.name
  return html`<p>You are signed in${who === undefined ? '' : ` as ${who}`}. This client has not been allowed to act for you yet.</p>`
}

function facts(request: AuthRequest): readonly Html[] {
  return [
    ...(request.clientKind === 'cimd'
      ? [html`<div><dt>Described by</dt><dd>${new URL(request.clientId).host}</dd></div>`]
      : [html`<div><dt>Name</dt><dd>chosen by the client itself, not verified</dd></div>`]),
    html`<div><dt>Sends you back to</dt><dd>${redirectHost(request.redirectUri)}</dd></div>`,
  ]
}

function warning(request: AuthRequest): Html | undefined {
  if (!isUnownedRedirect(request.redirectUri)) return undefined
  return html`<p class="warn" role="note">The response goes to a client on this computer, and any client here can claim to be this one. Continue only if you have just started it yourself.</p>`
}

function hidden(parts: FormParts): Html {
  return html`<input type="hidden" name="request" value="${parts.handle}"><input type="hidden" name="form" value="${parts.form}">`
}

/** Which services the user will sign in to; the first may be over already, and those that nothing needs may be left out. */
function providers(context: AuthServerContext, signedIn: boolean): Html | undefined {
  const [first, ...others] = context.upstreams
  if (others.length === 0) {
    return signedIn ? undefined : html`<p class="soft">You will sign in at ${first?.host}.</p>`
  }
  return html`<fieldset><legend>You will sign in at</legend>
<label><input type="checkbox" checked disabled> ${first?.name} (${first?.host}), says who you are</label>
${others.map(({ name, host }) =>
  isRequired(context, name)
    ? html`<label><input type="checkbox" checked disabled> ${name} (${host}), says what you may do</label>`
    : html`<label><input type="checkbox" name="provider" value="${name}" checked> ${name} (${host})</label>`,
)}
</fieldset>
${others.every(({ name }) => isRequired(context, name)) ? undefined : html`<p class="soft">Tools that need a service you leave out are not offered to this client. You can connect it later on the page of connected accounts.</p>`}`
}

export function providerPage(waiting: Confirmation, context: AuthServerContext, parts: FormParts): HtmlPage {
  const failed = waiting.failed ?? ''
  const body = html`<h1>${failed} could not be connected</h1>
<p>You are signed in, but the sign-in at ${failed} did not succeed. Tools that need it will not work until it does.</p>
<form method="post" action="${parts.action}">
${hidden(parts)}
<div class="buttons">
<button class="main" name="action" value="retry">Try again</button>
<button name="action" value="skip">Continue without it</button>
<button name="action" value="cancel">Cancel</button>
</div>
</form>`
  return page(`${failed} could not be connected`, body, targets(waiting.request, context))
}

/** Everything a form may lead to: the providers and whatever they redirect through, this server, and the client. */
function targets(request: AuthRequest, context: AuthServerContext): readonly string[] {
  const redirect = new URL(request.redirectUri)
  const client = /^https?:$/.test(redirect.protocol) ? redirect.origin : redirect.protocol
  return [...providerTargets(context), client]
}

/** As far as the providers, whatever they redirect through, and back here. */
export function providerTargets(context: AuthServerContext): readonly string[] {
  const origins = context.upstreams
    .map((upstream) => upstream.origin)
    .filter((origin) => origin !== undefined)
  return ['https:', ...origins, context.urls.pageOrigin]
}

/** A client's request that failed before anybody agreed to anything: the user decides whether to go where it says. */
export function leavingPage(host: string, location: string): HtmlPage {
  const body = html`<h1>This client asked for something it cannot have</h1>
<p>You can go back to it and tell it so. It will take you to:</p>
<dl><div><dt>Address</dt><dd>${host}</dd></div></dl>
<p><a href="${location}" rel="noreferrer noopener">Go back to ${host}</a></p>
<p class="soft">If you did not come from there, close this page.</p>`
  return page('This client asked for something it cannot have', body)
}

/** For users: what went wrong, in one sentence, and nothing else. */
export function errorPage(text: string): HtmlPage {
  const sentence = `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`
  return page('Sign-in is not possible', html`<h1>Sign-in is not possible</h1><p>${sentence}</p>`)
}
