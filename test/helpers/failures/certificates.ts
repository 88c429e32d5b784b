/** Failures of a server's certificate. */
import type { Test } from 'tap'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { type LeafOptions, makeAuthority, mountSecret, secretOf } from '../certificates.ts'
import { until } from '../redis.ts'
import { backend, rig, type Rig } from './rig.ts'
import type { Failure } from './views.ts'

const day = 86_400_000

/** Serves the certificate, then a different one with the same key. */
function serving(first: LeafOptions, withKeyOf?: 'nobody') {
  return async (t: Test): Promise<Rig> => {
    const authority = await makeAuthority()
    setDefaultCACertificates([...getCACertificates('default'), authority.ca])
    const leaf = await authority.leaf(first)
    const secret = mountSecret(secretOf(leaf))
    const running = await rig(t, { b: await backend(t) }, {}, { tls: secret })
    if (withKeyOf) secret.write(secretOf({ ...leaf, key: (await authority.leaf()).key }))
    await until(() => running.vmcp.view.problems().length > 0)
    return running
  }
}

const expiring = {
  type: 'serving_certificate_expiring',
  lasts: true,
  fix: /serves the new certificate without a restart/,
  metric: 'gatehouse_certificate_expiry_timestamp_seconds{certificate="serving"}',
} as const

export const certificateFailures: readonly Failure[] = [
  {
    ...expiring,
    name: 'a certificate of its own that ends soon',
    drive: serving({ endsInMs: 3 * day }),
    message: /^this server's certificate expires at \d{4}-/,
    logged: { level: 'warn', expired: false },
  },
  {
    name: 'a new certificate that is no pair with its key',
    type: 'serving_certificate_refused',
    lasts: true,
    drive: serving({}, 'nobody'),
    message: /^this server's new certificate cannot be used.*tls\.key: is not the key of the certificate in/,
    fix: /spec\.tls\.secretName/,
    logged: { level: 'error' },
  },
]
