/** Rows for certificate events: the server's own certificates, and certificates that it trusts. */
import type { EventTable } from '../row.ts'

export const certificateRows = {
  certificate_expiring: {
    message: ({ ends, expired }) => {
      if (ends === undefined) return 'no certificate for the backend expires soon'
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
              message: `a certificate in the caBundle for backend ${backend} ${expired ? 'expired' : 'expires'} at ${ends}`,
              fix: `add the new certificate to the CA bundle for ${backend} (caBundleRef, caBundlePath, or ca.crt in its TLS Secret) and remove the old one; the file is reloaded automatically`,
            },
    }),
  },
  serving_certificate_expiring: {
    message: ({ ends, expired }) => {
      if (ends === undefined) return "this server's certificate no longer expires soon"
      return expired ? "this server's certificate has expired" : "this server's certificate expires soon"
    },
    level: ({ ends, expired }) => (ends === undefined ? 'info' : expired ? 'error' : 'warn'),
    condition: ({ ends, expired }) => ({
      id: 'serving_certificate_expiring',
      open:
        ends === undefined
          ? undefined
          : {
              message: `this server's certificate ${expired ? 'expired' : 'expires'} at ${ends}`,
              fix: 'renew the certificate (spec.tls.secretName, --tls-cert-file and --tls-key-file); the server serves the new certificate without a restart',
            },
    }),
  },
  serving_certificate_reloaded: { message: 'a new certificate is in use', level: 'info' },
  serving_certificate_refused: {
    message: ({ reason }) =>
      reason === undefined
        ? 'the certificate in the files is usable again'
        : "this server's new certificate cannot be used; the previous one stays in use",
    level: ({ reason }) => (reason === undefined ? 'info' : 'error'),
    condition: ({ reason }) => ({
      id: 'serving_certificate_refused',
      open:
        reason === undefined
          ? undefined
          : {
              message: `this server's new certificate cannot be used; the previous one stays in use: ${reason}`,
              fix: 'correct the Secret named in spec.tls.secretName, or the files given with --tls-cert-file and --tls-key-file; they are reloaded automatically',
            },
    }),
  },
} satisfies Partial<EventTable>
