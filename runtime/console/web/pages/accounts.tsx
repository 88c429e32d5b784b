/** Accounts: the signed-in user with their roles, the link to connected accounts, and sign-out. */
import { useState } from 'preact/hooks'
import type { Connect, Me } from '../../api.ts'
import { ApiError, get, signOut } from '../data/client.ts'
import { useResource } from '../data/use-resource.ts'
import { Failure, Loaded } from '../parts/notices.tsx'
import { Foreign } from '../parts/text.tsx'
import { texts } from '../texts.ts'

export function AccountsPage({ me }: { readonly me: Me }) {
  const connect = useResource('connect', (signal) => get<Connect>('connect', signal))
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>{texts.pages.accounts}</h1>
      </div>
      <SignedIn me={me} />
      <section aria-labelledby="connected">
        <h2 id="connected">{texts.accounts.connected}</h2>
        <Loaded resource={connect}>{({ accounts }) => <Connected url={accounts} />}</Loaded>
      </section>
    </>
  )
}

function Connected({ url }: { readonly url: string | undefined }) {
  if (url === undefined) return <p>{texts.accounts.none}</p>
  return (
    <>
      <p>{texts.accounts.what}</p>
      <p>
        <a class="button" href={url} target="_blank" rel="noopener noreferrer">
          {texts.accounts.open}
        </a>
      </p>
    </>
  )
}

function SignedIn({ me }: { readonly me: Me }) {
  const [error, setError] = useState<ApiError | undefined>()
  const { user, roles } = me
  const leave = (): void => {
    signOut().catch((error: unknown) =>
      setError(error instanceof ApiError ? error : new ApiError(0, 'page', String(error))),
    )
  }
  return (
    <section aria-labelledby="you">
      <h2 id="you">{texts.accounts.you}</h2>
      <dl class="facts">
        <div>
          <dt>{texts.accounts.name}</dt>
          <dd>
            <Foreign text={user?.name ?? '–'} />
          </dd>
        </div>
        <div>
          <dt>{texts.accounts.subject}</dt>
          <dd>
            <Foreign text={user?.sub ?? '–'} />
          </dd>
        </div>
        <div>
          <dt>{texts.accounts.roles}</dt>
          <dd>{roles.map((role) => texts.roles[role] ?? role).join(', ') || texts.roles.none}</dd>
        </div>
        <div>
          <dt>{texts.accounts.login}</dt>
          <dd>{me.freshLogin ? texts.accounts.fresh : texts.accounts.old}</dd>
        </div>
      </dl>
      <p>{texts.accounts.rolesMean}</p>
      <button type="button" onClick={leave}>
        {texts.accounts.signOut}
      </button>
      {error ? <Failure error={error} /> : undefined}
    </section>
  )
}
