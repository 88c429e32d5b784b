/**
 * The page of connected accounts: for each client of the user, each provider with its state and what can be done.
 *
 * States are words, not only colours; every button says in full what it does and for which client.
 */
import { type Html, html, type HtmlPage, page } from '../../net/index.ts'
import type { AuthServerContext } from './context.ts'
import { providerTargets } from './pages.ts'

export interface Account {
  readonly name: string
  readonly host: string
  /** `none`: never connected. `expiring`: ends by itself, because the provider gave nothing to renew it with. */
  readonly state: 'connected' | 'expiring' | 'broken' | 'none'
  readonly leftMs?: number
  /** False: only a login from the client itself can renew it. */
  readonly mayConnect: boolean
}

export interface ConnectedClient {
  readonly handle: string
  readonly name: string
  /** By a document at its own host, which the name is then. */
  readonly described: boolean
  readonly accounts: readonly Account[]
}

/** A client whose session ended by itself, because the sign-in at this provider did. */
export interface OverClient {
  readonly name: string
  readonly provider: string
}

export interface AccountsParts {
  /** The field that ties the forms to this browser. */
  readonly form: string
  readonly clients: readonly ConnectedClient[]
  readonly over: readonly OverClient[]
  readonly problem: string | undefined
  readonly who: string | undefined
}

export function accountsPage(context: AuthServerContext, parts: AccountsParts): HtmlPage {
  const { clients, over, problem, who } = parts
  const action = context.urls.accounts
  const body = html`<h1>Connected accounts</h1>
${who === undefined ? undefined : html`<p>You are <bdi>${who}</bdi>.</p>`}
${problem === undefined ? undefined : html`<p class="warn" role="alert">${problem} could not be connected. Nothing was changed.</p>`}
${clients.length === 0 ? html`<p>No client is signed in for you.</p>` : clients.map((client) => section(client, parts.form, action))}
${over.map(({ name, provider }) => html`<fieldset><legend><bdi>${name}</bdi></legend><p>Signed out: the sign-in at ${provider} has ended and could not be renewed. Sign in again from this client.</p></fieldset>`)}
<form method="post" action="${action}"><input type="hidden" name="form" value="${parts.form}">
<button name="action" value="leave">Sign out of this browser</button>
<p class="soft">Your clients stay signed in.</p>
</form>`
  return page('Connected accounts', body, providerTargets(context))
}

export function leftPage(): HtmlPage {
  const body = html`<h1>You are signed out of this browser</h1>
<p>Your clients stay signed in. To see them here, sign in from one of them again.</p>`
  return page('Signed out of this browser', body)
}

function section(client: ConnectedClient, form: string, action: string): Html {
  const { name, described, accounts, handle } = client
  const hidden = html`<input type="hidden" name="form" value="${form}"><input type="hidden" name="client" value="${handle}">`
  return html`<fieldset><legend><bdi>${name}</bdi></legend>
<p class="soft">${described ? 'Described by this host.' : 'The name was chosen by the client itself, not verified.'}</p>
<dl>
${accounts.map((account) => row(account, name, hidden, action))}
</dl>
<form method="post" action="${action}">${hidden}
<button name="action" value="end" aria-label="Sign ${name} out">Sign this client out</button>
</form></fieldset>`
}

function row(account: Account, client: string, hidden: Html, action: string): Html {
  const { name, host, state } = account
  const change = state === 'none' ? 'Connect' : 'Renew'
  return html`<div><dt>${name} (${host})</dt><dd>${text(account)}
<form method="post" action="${action}" class="buttons">${hidden}<input type="hidden" name="provider" value="${name}">
${account.mayConnect ? html`<button name="action" value="connect" aria-label="${change} ${name} for ${client}">${change}</button>` : undefined}
${state === 'none' ? undefined : html`<button name="action" value="disconnect" aria-label="Disconnect ${name} from ${client}">Disconnect</button>`}
</form></dd></div>`
}

function text({ state, leftMs = 0 }: Account): string {
  switch (state) {
    case 'connected':
      return 'Connected'
    case 'expiring':
      return `Connected, ends in ${duration(leftMs)}`
    case 'broken':
      return 'Broken: sign in there again'
    default:
      return 'Not connected'
  }
}

function duration(ms: number): string {
  const minutes = Math.max(1, Math.round(ms / 60_000))
  if (minutes < 120) return minutes === 1 ? '1 minute' : `${minutes} minutes`
  const hours = Math.round(minutes / 60)
  return hours < 48 ? `${hours} hours` : `${Math.round(hours / 24)} days`
}
