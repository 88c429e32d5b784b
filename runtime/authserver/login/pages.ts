/**
 * The login pages: consent, a provider that could not be connected, and errors.
 *
 * A page marks everything that a client states about itself as a claim. Only facts that this server has checked are
 * presented as such: where the response goes, and which host serves the description.
 * Source: MCP 2025-11-25 security best practices (consent page), client-id metadata documents section 6.
 */
import { type Html, html, type HtmlPage, page } from '../../net/index.ts'
import { isUnownedRedirect, redirectHost } from '../clients/redirect-uri.ts'
import type { AuthRequest, Confirmation, User } from '../model/records.ts'
import { isOffered, type Offer } from '../model/offered.ts'
import { type AuthServerContext, isRequired } from './context.ts'

export interface PageForm {
  readonly handle: string
  /** Field that ties the form to this browser. */
  readonly form: string
  readonly action: string
}

const scopeTexts: ReadonlyMap<string, string> = new Map([
  ['openid', 'Know which account you use'],
  ['profile', 'See your name'],
  ['email', 'See your email address'],
  ['offline_access', 'Stay signed in when you are away'],
])

export function consentPage(
  request: AuthRequest,
  context: AuthServerContext,
  { user, offered, ...form }: PageForm & Offer & { readonly user?: User },
): HtmlPage {
  const [server = context.urls.pageOrigin] = request.resources
  const who = user?.email ?? user?.name
  const body = html`<h1>Allow access to ${hostOf(server)}?</h1>
${introduction(request)}
${user && html`<p>You are signed in${who === undefined ? '' : ` as ${who}`}. This client has not been allowed to act for you yet.</p>`}
<dl>
${origin(request)}
<div><dt>Sends you back to</dt><dd>${redirectHost(request.redirectUri)}</dd></div>
<div><dt>Wants access to</dt><dd><ul>${request.resources.map((one) => html`<li>${one}</li>`)}</ul></dd></div>
<div><dt>Wants to</dt><dd><ul>${request.scopes.map((scope) => html`<li>${scopeTexts.get(scope) ?? scope}</li>`)}</ul></dd></div>
</dl>
${isUnownedRedirect(request.redirectUri) ? html`<p class="warn" role="note">The response goes to a client on this computer, and any client here can claim to be this one. Continue only if you have just started it yourself.</p>` : undefined}
<form method="post" action="${form.action}">
${hiddenFields(form)}
${providerChoice(context, user, { offered })}
<div class="buttons">
<button class="main" name="action" value="approve">Allow and continue</button>
<button name="action" value="deny">Cancel</button>
</div>
</form>`
  return page(`Allow access to ${hostOf(server)}?`, body, formTargets(request, context))
}

/** Returns the name that the client chose. The page introduces a client without a name by its host or its id. */
function introduction({ clientKind, clientId, clientName }: AuthRequest): Html {
  if (clientKind === 'cimd')
    return html`<p>The client <bdi>${clientName ?? new URL(clientId).host}</bdi> wants to act for you.</p>`
  return clientName === undefined
    ? html`<p>A client without a name wants to act for you.</p>
<p class="warn" role="note"><strong>Unverified client.</strong> Any program can register here without a name. Its ID was assigned by this server and does not show who runs it.</p>`
    : html`<p>The client <bdi>${clientName}</bdi> wants to act for you. Its name is not verified.</p>
<p class="warn" role="note"><strong>Unverified name.</strong> The client chose this name itself, and any other client can choose it too.</p>`
}

/**
 * Returns the facts about the client that this server can verify: the host that describes it, or the id of a client
 * without a name.
 */
function origin({ clientKind, clientId, clientName }: AuthRequest): Html | undefined {
  if (clientKind === 'cimd') return html`<div><dt>Described by</dt><dd>${new URL(clientId).host}</dd></div>`
  return clientName === undefined ? html`<div><dt>Client ID</dt><dd>${clientId}</dd></div>` : undefined
}

/** Returns the host of the server that the client requests access to. */
function hostOf(resource: string): string {
  return URL.canParse(resource) ? new URL(resource).host : resource
}

function hiddenFields({ handle, form }: PageForm): Html {
  return html`<input type="hidden" name="request" value="${handle}"><input type="hidden" name="form" value="${form}">`
}

/** Lists the providers that the user will sign in to. The user may already have signed in to the first provider. */
function providerChoice(context: AuthServerContext, user: User | undefined, offer: Offer): Html | undefined {
  const [first, ...all] = context.upstreams
  const others = all.filter(({ name }) => isOffered(offer, name))
  if (others.length === 0)
    return user ? undefined : html`<p class="soft">You will sign in at ${first?.host}.</p>`
  return html`<fieldset><legend>You will sign in at</legend>
<label><input type="checkbox" checked disabled> ${first?.name} (${first?.host}), identifies you</label>
${others.map(({ name, host }) =>
  isRequired(context, name)
    ? html`<label><input type="checkbox" checked disabled> ${name} (${host}), determines what you may do</label>`
    : html`<label><input type="checkbox" name="provider" value="${name}" checked> ${name} (${host})</label>`,
)}
</fieldset>
${context.config.upstreamFilter && !user ? html`<p class="soft">After you sign in at ${first?.name}, you continue only with the services for your groups.</p>` : undefined}
${others.every(({ name }) => isRequired(context, name)) ? undefined : html`<p class="soft">Tools that need a service you leave out are not offered to this client. You can connect it later on the page of connected accounts.</p>`}`
}

export function providerPage(
  { failed, request }: Pick<Confirmation, 'request'> & { readonly failed: string },
  context: AuthServerContext,
  form: PageForm,
): HtmlPage {
  const body = html`<h1>${failed} could not be connected</h1>
<p>You are signed in, but signing in with ${failed} did not succeed. Tools that need it will not work until it does.</p>
<form method="post" action="${form.action}">
${hiddenFields(form)}
<div class="buttons">
<button class="main" name="action" value="retry">Try again</button>
<button name="action" value="skip">Continue without it</button>
<button name="action" value="cancel">Cancel</button>
</div>
</form>`
  return page(`${failed} could not be connected`, body, formTargets(request, context))
}

/**
 * Returns every target that a form may redirect to: the providers with their redirects, this server, and the client.
 */
function formTargets({ redirectUri }: AuthRequest, context: AuthServerContext): readonly string[] {
  const { protocol, origin } = new URL(redirectUri)
  return [...providerTargets(context), /^https?:$/.test(protocol) ? origin : protocol]
}

/**
 * Returns the form targets for a login with the providers (which may redirect to any https address) and this server.
 */
export function providerTargets({ upstreams, urls }: AuthServerContext): readonly string[] {
  const origins = upstreams.map(({ origin }) => origin).filter((origin) => origin !== undefined)
  return ['https:', ...origins, urls.pageOrigin]
}

/**
 * The page for a client request that failed before the user approved anything. The user decides whether to follow the
 * redirect.
 */
export function leavingPage(host: string, location: string): HtmlPage {
  const body = html`<h1>The client’s request was rejected</h1>
<p>You can return to the client, which then receives the error. The link opens this address:</p>
<dl><div><dt>Address</dt><dd>${host}</dd></div></dl>
<p><a href="${location}" rel="noreferrer noopener">Go back to ${host}</a></p>
<p class="soft">If you did not come from there, close this page.</p>`
  return page('The client’s request was rejected', body)
}

export function errorPage(text: string): HtmlPage {
  const sentence = `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`
  return page('Sign-in is not possible', html`<h1>Sign-in is not possible</h1><p>${sentence}</p>`)
}
