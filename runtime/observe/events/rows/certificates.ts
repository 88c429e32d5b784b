/** Event rows about certificates: the server's own, and those that it trusts. */
import type { EventTable } from '../row.ts'

export const certificateRows = {
  certificate_expiring: {
    message: ({ ends, expired }) => {
      if (ends === undefined) return 'no certificate of the backend expires soon'
      return expired ? 'a certificate for a backend has expired' : 'a certificate for a backend expires soon'
    },
    level: ({ ends, expired }) => (ends === undefined ? 'info' : expired ? 'error' : 'warn'),
    condition: ({ backend, ends, expired }) => ({
      id: `certificate_expiring/${backend}`,
      backend,
      open:
        ends === undefined
          ? undefined
          : {
              message: `a certificate in the caBundle of backend ${backend} ${expired ? 'expired' : 'expires'} at ${ends}`,
              fix: `add the new certificate to the CA bundle of ${backend} (caBundleRef, caBundlePath, ca.crt of its TLS Secret) and remove the old one; the file is reloaded automatically`,
            },
    }),
  },
  serving_certificate_expiring: {
    message: ({ ends, expired }) => {
      if (ends === undefined) return 'the certificate of this server no longer expires soon'
      return expired
        ? 'the certificate of this server has expired'
        : 'the certificate of this server expires soon'
    },
    level: ({ ends, expired }) => (ends === undefined ? 'info' : expired ? 'error' : 'warn'),
    condition: ({ ends, expired }) => ({
      id: 'serving_certificate_expiring',
      open:
        ends === undefined
          ? undefined
          : {
              message: `the certificate of this server ${expired ? 'expired' : 'expires'} at ${ends}`,
              fix: 'renew it (spec.tls.secretName, --tls-cert-file and --tls-key-file); the new one is served without a restart',
            },
    }),
  },
  serving_certificate_reloaded: { message: 'a new certificate is in use', level: 'info' },
  serving_certificate_refused: {
    message: ({ reason }) =>
      reason === undefined
        ? 'the certificate in the files is usable again'
        : 'the new certificate of this server cannot be used; the previous one stays in use',
    level: ({ reason }) => (reason === undefined ? 'info' : 'error'),
    condition: ({ reason }) => ({
      id: 'serving_certificate_refused',
      open:
        reason === undefined
          ? undefined
          : {
              message: `the new certificate of this server cannot be used; the previous one stays in use: ${reason}`,
              fix: 'correct the Secret of spec.tls.secretName, or the files of --tls-cert-file and --tls-key-file; they are reloaded automatically',
            },
    }),
  },
} satisfies Partial<EventTable>
