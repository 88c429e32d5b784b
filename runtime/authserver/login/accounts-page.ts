/**
 * The connected accounts page. For each of the user's clients, the page shows each provider with its state and buttons.
 *
 * States are shown as words in addition to colors. The label of a button states the button's effect and the client.
 */
import { type Html, html, type HtmlPage, page } from '../../net/index.ts'
import type { AuthServerContext } from './context.ts'
import { providerTargets } from './pages.ts'

export interface Account {
  readonly name: string
  readonly host: string
  /** `none`: never connected. `expiring`: the connection will expire, because the provider issued no refresh token. */
  readonly state: 'connected' | 'expiring' | 'broken' | 'none'
  readonly leftMs?: number | undefined
  /** False when the connection can be renewed only by a login that the client itself starts. */
  readonly canConnect: boolean
}

export interface ConnectedClient {
  readonly handle: string
  readonly name: string
  /** Source of the name: the host of a metadata document, the client's registration, or the client's id. */
  readonly namedBy: 'host' | 'client' | 'id'
  readonly accounts: readonly Account[]
}

interface ConnectedAccounts {
  /** Field that ties the forms to this browser. */
  readonly form: string
  readonly clients: readonly ConnectedClient[]
  /** Clients whose session ended because the sign-in session with this provider ended. */
  readonly ended: readonly { readonly name: string; readonly provider: string }[]
  /** Provider that could not be connected. */
  readonly problem: string | undefined
  readonly user: string | undefined
}

export function accountsPage(context: AuthServerContext, accounts: ConnectedAccounts): HtmlPage {
  const { form, clients, ended, problem, user } = accounts
  const action = context.urls.accounts
  const body = html`<h1>Connected accounts</h1>
${user === undefined ? undefined : html`<p>You are <bdi>${user}</bdi>.</p>`}
${problem === undefined ? undefined : html`<p class="warn" role="alert">${problem} could not be connected. Nothing was changed.</p>`}
${clients.length === 0 ? html`<p>No client is signed in for you.</p>` : clients.map((client) => clientSection(client, form, action))}
${ended.map(({ name, provider }) => html`<fieldset><legend><bdi>${name}</bdi></legend><p>Signed out: the sign-in session with ${provider} has ended and could not be renewed. Sign in again from this client.</p></fieldset>`)}
<form method="post" action="${action}"><input type="hidden" name="form" value="${form}">
<button name="action" value="leave">Sign out of this browser</button>
<p class="soft">Your clients stay signed in.</p>
</form>`
  return page('Connected accounts', body, providerTargets(context))
}

export function signedOutPage(): HtmlPage {
  const body = html`<h1>You are signed out of this browser</h1>
<p>Your clients stay signed in. To see them here, sign in from one of them again.</p>`
  return page('Signed out of this browser', body)
}

const nameNotes = {
  host: 'Described by this host.',
  client: 'The client chose this name. It is not verified.',
  id: 'The client has no name. This server assigned its ID, which does not show who runs it.',
} as const

function clientSection(client: ConnectedClient, form: string, action: string): Html {
  const { name, namedBy, accounts, handle } = client
  const hiddenFields = html`<input type="hidden" name="form" value="${form}"><input type="hidden" name="client" value="${handle}">`
  return html`<fieldset><legend><bdi>${name}</bdi></legend>
<p class="soft">${nameNotes[namedBy]}</p>
<dl>
${accounts.map((account) => accountRow(account, { client: name, hiddenFields, action }))}
</dl>
<form method="post" action="${action}">${hiddenFields}
<button name="action" value="end" aria-label="Sign ${name} out">Sign this client out</button>
</form></fieldset>`
}

function accountRow(
  { name, host, state, leftMs, canConnect }: Account,
  { client, hiddenFields, action }: { client: string; hiddenFields: Html; action: string },
): Html {
  const change = state === 'none' ? 'Connect' : 'Renew'
  return html`<div><dt>${name} (${host})</dt><dd>${stateText({ state, leftMs })}
<form method="post" action="${action}" class="buttons">${hiddenFields}<input type="hidden" name="provider" value="${name}">
${canConnect ? html`<button name="action" value="connect" aria-label="${change} ${name} for ${client}">${change}</button>` : undefined}
${state === 'none' ? undefined : html`<button name="action" value="disconnect" aria-label="Disconnect ${name} from ${client}">Disconnect</button>`}
</form></dd></div>`
}

function stateText({ state, leftMs = 0 }: Pick<Account, 'state' | 'leftMs'>): string {
  switch (state) {
    case 'connected':
      return 'Connected'
    case 'expiring':
      return `Connected, expires in ${formatDuration(leftMs)}`
    case 'broken':
      return 'Broken: sign in to the provider again'
    default:
      return 'Not connected'
  }
}

function formatDuration(ms: number): string {
  const minutes = Math.max(1, Math.round(ms / 60_000))
  if (minutes < 120) return minutes === 1 ? '1 minute' : `${minutes} minutes`
  const hours = Math.round(minutes / 60)
  return hours < 48 ? `${hours} hours` : `${Math.round(hours / 24)} days`
}
