/** Why the server did not do what the page asked, in the languages that it does not speak itself. */

import { language } from "./words.js";

const REASONS = {
  es: {
    name: "El nombre lleva de 1 a 40 caracteres.",
    no_address: "Hace falta un teléfono, un nombre de usuario o ambos.",
    phone: "El teléfono lleva de 8 a 15 cifras, primero el código de país.",
    username: "El nombre de usuario lleva de 3 a 35 minúsculas, cifras, puntos y guiones bajos.",
    phone_taken: "Alguien aquí ya tiene ese número.",
    username_taken: "Alguien aquí ya tiene ese nombre de usuario.",
    full: "Ya hay {most} personas.",
    file: "No se envían archivos de ese tipo o tamaño: fotos hasta 5 MB, WebP hasta 500 KB.",
  },
  pt: {
    name: "O nome tem de 1 a 40 caracteres.",
    no_address: "É preciso um telefone, um nome de usuário ou os dois.",
    phone: "O telefone tem de 8 a 15 dígitos, primeiro o código do país.",
    username: "O nome de usuário tem de 3 a 35 letras minúsculas, dígitos, pontos e sublinhados.",
    phone_taken: "Alguém aqui já tem esse número.",
    username_taken: "Alguém aqui já tem esse nome de usuário.",
    full: "Já há {most} pessoas.",
    file: "Não se enviam arquivos desse tipo ou tamanho: fotos até 5 MB, WebP até 500 KB.",
  },
};

/** The server's answer as one reads it; in its own English where there is no other sentence. */
export function reasonOf({ error, reason, values }) {
  const sentence = REASONS[language()]?.[reason];
  return sentence ? sentence.replace(/\{(\w+)\}/g, (_, name) => values[name]) : error;
}
